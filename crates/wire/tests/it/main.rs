//! Frames against the outside: their bytes as recorded, arbitrary values, hostile bytes.

mod allocation;
mod golden;
mod hostile;
mod letters;
mod properties;
mod sample;
mod strategies;
mod versions;
