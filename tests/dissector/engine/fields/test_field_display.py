"""How fields are shown; what that makes of them is held in `test_fields`."""

from __future__ import annotations

from dissector.engine.fields import field_display
from dissector.engine.fields.field_display import FieldDisplay
from dissector.protocol.program import ProgramTable


def test_looks_grow_with_the_programs() -> None:
    programs, looks = ProgramTable(), FieldDisplay(show_secrets=False)
    for key, kind in ((0, "request"), (36, "request"), (32, "response"), (36, "request")):
        programs.start(key, 2 if key == 36 else 4, kind)  # type: ignore[arg-type]
        grown, anew = (
            looks.update(programs.field_refs),
            FieldDisplay(show_secrets=False).update(programs.field_refs),
        )
        assert len(grown.kinds) == len(programs.field_refs)
        for name in ("kinds", "sizes", "roles"):
            assert getattr(grown, name).tolist() == getattr(anew, name).tolist()
    assert field_display.SECRET in looks.kinds
    assert looks.roles.any()
    assert (
        field_display.SECRET
        not in FieldDisplay(show_secrets=True).update(programs.field_refs).kinds
    )
