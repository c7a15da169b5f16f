//! `enroute config`: check a configuration file, or print one to start from.

use crate::failure::Failure;
use crate::output::Output;
use clap::Subcommand;
use enroute_node::NodeConfig;
use std::fs;
use std::path::{Path, PathBuf};

/// What `config example` prints: every field with its default.
const EXAMPLE: &str = include_str!("config-example.toml");

/// The commands.
#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check a configuration file of `run`
    Check {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Print a configuration with every field, its meaning and its default
    Example,
}

pub(crate) fn run(command: ConfigCommand) -> Result<(), Failure> {
    let mut output = Output::new();
    match command {
        ConfigCommand::Check { file } => {
            load(&file)?;
            output.line(format_args!("{}: ok", file.display()))?;
        }
        ConfigCommand::Example => output.line(EXAMPLE.trim_end())?,
    }
    output.flush()
}

/// Reads a configuration file.
pub(crate) fn load(file: &Path) -> Result<NodeConfig, Failure> {
    let name = file.display();
    let text = fs::read_to_string(file).map_err(|error| Failure::new(format!("cannot read {name}")).because(&error))?;
    NodeConfig::from_toml(&text).map_err(|error| {
        // The message shows the line and a caret under the place.
        Failure::new(format!("in {name}"))
            .showing(error.to_string())
            .hint("`enroute config example` prints a configuration with every field explained")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::run::DEFAULT_LISTEN;

    #[test]
    fn the_example_is_the_default_and_names_every_field() {
        let example = NodeConfig::from_toml(EXAMPLE).unwrap();
        assert_eq!(example, NodeConfig { listen: vec![DEFAULT_LISTEN.parse().unwrap()], ..NodeConfig::default() });
        let every_field = NodeConfig { data_dir: Some("x".into()), merge_filters: Some(1), ..NodeConfig::default() };
        let fields: toml::Table = toml::from_str(&toml::to_string(&every_field).unwrap()).unwrap();
        for field in fields.keys() {
            assert!(EXAMPLE.contains(&format!("{field} = ")), "{field} is missing");
        }
    }
}
