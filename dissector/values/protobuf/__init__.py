"""Protocol Buffers: `.proto` texts and descriptor sets to readers of the wire format."""
