//! Runs the built program, as a shell does.

mod demo;
mod files;
mod filters;
mod leaves;
mod mesh;
mod network;
mod program;
mod real;
mod six;
