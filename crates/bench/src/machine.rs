//! Under what circumstances something was measured.

use enroute_filter::Timestamp;
use serde::Serialize;
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// Machine, command and date.
#[derive(Clone, Debug, Serialize)]
pub struct Circumstances {
    /// The processor's name.
    pub processor: String,
    /// How many of its threads this program may use.
    pub threads: usize,
    /// Operating system and architecture.
    pub system: String,
    /// The command line, without the directory of the program.
    pub command: String,
    /// When it began, in UTC.
    pub date: String,
}

impl Circumstances {
    /// Those of now.
    pub fn now() -> Circumstances {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        Circumstances {
            processor: processor().unwrap_or_else(|| "unknown processor".to_owned()),
            threads: std::thread::available_parallelism().map_or(1, |threads| threads.get()),
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            command: format!("enroute-bench {}", arguments.join(" ")),
            date: Timestamp(since_epoch.as_secs() as i64 * 1_000_000_000).to_string(),
        }
    }
}

impl fmt::Display for Circumstances {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Circumstances { processor, threads, system, command, date } = self;
        write!(f, "{processor}, {threads} threads, {system}, {date}: {command}")
    }
}

/// As Linux tells it.
fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
