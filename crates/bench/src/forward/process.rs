//! A process of a measurement, its processor time and memory.

use crate::forward::role::{Ready, Role};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long a process may take for an answer. Placing a million subscriptions takes the longest.
const PATIENCE: Duration = Duration::from_secs(300);

/// Ticks of the processor times in `/proc` in a second: fixed in Linux' interface.
const TICKS: f64 = 100.0;

/// A process, which ends with this value.
#[derive(Debug)]
pub struct Process {
    /// What it is, for the table.
    pub name: String,
    /// What it said when it was ready.
    pub address: String,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Process {
    /// Starts a program in a role and waits until it is ready.
    ///
    /// # Errors
    /// If it cannot be started, or is not ready in time.
    pub fn start(name: &str, program: &Path, arguments: &[&str], role: &Role) -> Result<Process, String> {
        let role = serde_json::to_string(role).expect("numbers and strings");
        let mut command = Command::new(program);
        command.args(arguments).arg(role).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or("no output")?;
        let mut process = Process { name: name.into(), address: String::new(), child, input, lines: lines_of(output) };
        let Ready { ready } = process.hear()?;
        process.address = ready;
        Ok(process)
    }

    /// Starts a server that knows nothing of roles, and waits until it says on standard error that it accepts connections.
    ///
    /// # Errors
    /// If it cannot be started, or does not say so in time.
    pub fn start_server(name: &str, command: &mut Command, port: u16, ready: &str) -> Result<Process, String> {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("cannot start {name}: {error}"))?;
        let said = child.stderr.take().ok_or("no output")?;
        let address = format!("127.0.0.1:{port}");
        let process = Process { name: name.into(), address, child, input: None, lines: lines_of(said) };
        while !process.next_line()?.contains(ready) {}
        Ok(process)
    }

    /// Sends a line and waits for the answer.
    ///
    /// # Errors
    /// If the process has ended or does not answer in time.
    pub fn ask<T: DeserializeOwned>(&mut self, line: &impl Serialize) -> Result<T, String> {
        let text = serde_json::to_string(line).expect("numbers and strings");
        let input = self.input.as_mut().ok_or("a server is not asked")?;
        writeln!(input, "{text}").map_err(|error| format!("{} is gone: {error}", self.name))?;
        self.hear()
    }

    fn hear<T: DeserializeOwned>(&mut self) -> Result<T, String> {
        let line = self.next_line()?;
        serde_json::from_str(&line).map_err(|error| format!("{} says {line}: {error}", self.name))
    }

    fn next_line(&self) -> Result<String, String> {
        self.lines.recv_timeout(PATIENCE).map_err(|error| format!("{}: {error}", self.name))
    }

    /// Seconds of processor time so far, in all threads.
    pub fn processor_seconds(&self) -> f64 {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        // The name, in parentheses, may hold anything; user and system time are the 12th and 13th field behind it.
        let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
        fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / TICKS
    }

    /// Bytes of memory in use.
    pub fn resident_bytes(&self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        line.split_whitespace().next().and_then(|kilobytes| kilobytes.parse::<u64>().ok()).unwrap_or(0) * 1024
    }
}

/// The lines of an output, read as they come so that nobody is held up who writes them.
fn lines_of(output: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
