//! Frames against the outside: their bytes as recorded, arbitrary values, hostile bytes.

mod allocation;
mod golden;
mod hostile;
mod letters;
mod passing;
mod properties;
mod sample;
mod strategies;
mod versions;
