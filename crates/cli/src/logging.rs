//! The log, on standard error.

use crate::arguments::{Arguments, Command, LogFormat};
use crate::failure::Failure;
use std::io::{self, IsTerminal};
use tracing_subscriber::EnvFilter;

/// Installs the subscriber for this process.
pub(crate) fn start(arguments: &Arguments) -> Result<(), Failure> {
    let directives = match &arguments.log {
        Some(log) => log.clone(),
        None => default_directives(&arguments.command, arguments.verbose),
    };
    let filter = EnvFilter::try_new(&directives).map_err(|error| {
        Failure::usage(format!("--log {directives}: not a level or directive"))
            .because(&error)
            .hint("use error, warn, info, debug or trace, or a directive such as enroute_node=debug")
    })?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match arguments.log_format {
        LogFormat::Text => builder.with_ansi(io::stderr().is_terminal()).init(),
        LogFormat::Json => builder.json().init(),
    }
    Ok(())
}

/// The libraries below Enroute are quiet until one asks for everything. A broker tells of its links; the other commands
/// say what matters themselves.
fn default_directives(command: &Command, verbose: u8) -> String {
    let quietest = u8::from(matches!(command, Command::Run(_)));
    match quietest + verbose {
        0 => "error".to_owned(),
        1 => "error,enroute=info".to_owned(),
        2 => "warn,enroute=debug".to_owned(),
        _ => "trace".to_owned(),
    }
}
