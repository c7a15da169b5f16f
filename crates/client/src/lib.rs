//! Publish and subscribe through a running Enroute node.
