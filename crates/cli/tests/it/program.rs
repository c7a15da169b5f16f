//! Runs of the program.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than anything here takes; a test that waits for it has failed.
const DEADLINE: Duration = Duration::from_secs(60);

/// What a run that has ended has left.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The program with nothing from the environment.
pub(crate) fn enroute(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_enroute"));
    command.args(arguments).env_remove("ENROUTE_BROKER").env_remove("ENROUTE_LOG");
    command
}

/// Runs the program to its end with this input.
pub(crate) fn run(arguments: &[&str], input: impl AsRef<[u8]>) -> Ended {
    let mut running = Running::start(arguments);
    running.write(input);
    running.end()
}

/// The program while it runs; killed when dropped.
pub(crate) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Lines,
    stderr: Lines,
}

impl Running {
    pub(crate) fn start(arguments: &[&str]) -> Running {
        let mut running = Running::start_unread(arguments);
        if let Some(stdout) = running.child.stdout.take() {
            running.stdout = Lines::of(stdout);
        }
        running
    }

    /// Nobody reads its standard output: the pipe is there, until [`Running::stop_reading`].
    pub(crate) fn start_unread(arguments: &[&str]) -> Running {
        let mut command = enroute(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = Lines::of(child.stderr.take().unwrap());
        Running { stdin: child.stdin.take(), child, stdout: Lines::of(std::io::empty()), stderr }
    }

    /// Closes the pipe that nobody reads.
    pub(crate) fn stop_reading(&mut self) {
        self.child.stdout = None;
    }

    /// Writes to standard input. A program that has ended does not read it, which is for the test to judge.
    pub(crate) fn write(&mut self, input: impl AsRef<[u8]>) {
        let stdin = self.stdin.as_mut().unwrap();
        let _ = stdin.write_all(input.as_ref()).and_then(|()| stdin.flush());
    }

    /// The next line of standard output.
    pub(crate) fn line(&mut self) -> String {
        self.stdout.next().unwrap_or_else(|why| panic!("{why}; standard error:\n{}", self.stderr.so_far()))
    }

    /// Waits for a line of standard error with this in it.
    pub(crate) fn told(&mut self, part: &str) -> String {
        loop {
            let line = match self.stderr.next() {
                Ok(line) => line,
                Err(why) => panic!("{why} while waiting for '{part}'; standard error:\n{}", self.stderr.so_far()),
            };
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Asks it to end, as ctrl-C does.
    #[cfg(unix)]
    pub(crate) fn interrupt(&self) {
        self.signal("INT");
    }

    /// Sends a signal by name.
    #[cfg(unix)]
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Kills it without further ado.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends its input and waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        self.stdin = None;
        let stdout = self.stdout.rest();
        let stderr = self.stderr.rest();
        // Both outputs are closed, so that it is ending.
        let code = self.child.wait().unwrap().code();
        Ended { code, stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lines of an output, read by a thread so that waiting for them can end.
struct Lines {
    receiver: Receiver<String>,
    taken: String,
}

impl Lines {
    fn of(output: impl Read + Send + 'static) -> Lines {
        let (sender, receiver) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Lines { receiver, taken: String::new() }
    }

    fn next(&mut self) -> Result<String, String> {
        let line = self.receiver.recv_timeout(DEADLINE).map_err(|error| format!("no line: {error}"))?;
        self.taken += &line;
        self.taken.push('\n');
        Ok(line)
    }

    /// All there has been, the lines taken already included.
    fn so_far(&mut self) -> &str {
        for line in self.receiver.try_iter() {
            self.taken += &line;
            self.taken.push('\n');
        }
        &self.taken
    }

    /// All there is until the output is closed, the lines taken already included.
    fn rest(&mut self) -> String {
        let deadline = Instant::now() + DEADLINE;
        loop {
            match self.receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    self.taken += &line;
                    self.taken.push('\n');
                }
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return std::mem::take(&mut self.taken),
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("it does not end; so far:\n{}", self.taken),
            }
        }
    }
}
