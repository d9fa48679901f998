"""Numbers in, SVG coordinates out."""
