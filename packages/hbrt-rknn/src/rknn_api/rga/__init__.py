"""The 2D engine of Rockchip's chips, RGA, computed by OpenCV."""
