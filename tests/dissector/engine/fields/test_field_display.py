"""Display kinds of fields; their effect is tested in `test_field_reader`."""

from __future__ import annotations

from dissector.engine.fields import field_display
from dissector.engine.fields.field_display import FieldDisplay
from dissector.protocol.program import ProgramTable


def test_display_kinds_are_updated_for_new_programs() -> None:
    programs, display = ProgramTable(), FieldDisplay(show_secrets=False)
    for key, kind in ((0, "request"), (36, "request"), (32, "response"), (36, "request")):
        programs.start(key, 2 if key == 36 else 4, kind)  # type: ignore[arg-type]
        grown, fresh = (
            display.update(programs.field_refs),
            FieldDisplay(show_secrets=False).update(programs.field_refs),
        )
        assert len(grown.kinds) == len(programs.field_refs)
        for name in ("kinds", "sizes", "roles"):
            assert getattr(grown, name).tolist() == getattr(fresh, name).tolist()
    assert field_display.SECRET in display.kinds
    assert display.roles.any()
    assert (
        field_display.SECRET
        not in FieldDisplay(show_secrets=True).update(programs.field_refs).kinds
    )
