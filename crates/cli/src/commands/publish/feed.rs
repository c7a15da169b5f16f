//! Events read ahead by a thread of their own, since reading a file or standard input blocks.

use crate::failure::Failure;
use crate::lines::{Line, Lines};
use enroute_filter::{Event, JsonReader};
use std::io;
use std::path::Path;
use std::thread;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Items handed over at a time, if so many can be read without a wait, and how often that many are read ahead.
const TOGETHER: usize = 64;
const AHEAD: usize = 16;

/// What comes of a line.
pub(super) enum Item {
    /// An event, and how many arrays were left out.
    Event { line: u64, event: Event, arrays: u64 },
    /// A line that is no event, and why.
    Bad { line: u64, message: String },
    /// Reading has failed; nothing follows.
    Failed(io::Error),
}

/// The items of a file or of standard input, in order.
pub(super) struct Feed {
    items: Receiver<Vec<Item>>,
    /// Those that are here.
    here: std::vec::IntoIter<Item>,
}

impl Feed {
    /// Starts reading. Blank lines are left out.
    pub(super) fn open(file: Option<&Path>, reader: JsonReader) -> Result<Feed, Failure> {
        let lines = Lines::open(file)?;
        let (sender, items) = channel(AHEAD);
        // Not joined: it may be waiting for a line that never comes.
        let spawned = thread::Builder::new().name("lines".to_owned()).spawn(move || read(lines, &reader, &sender));
        spawned.map_err(|error| Failure::new("cannot start a thread").because(&error))?;
        Ok(Feed { items, here: Vec::new().into_iter() })
    }

    /// The next item; none at the end. Cancelling the wait loses nothing.
    pub(super) async fn next(&mut self) -> Option<Item> {
        if self.here.len() == 0 {
            self.here = self.items.recv().await?.into_iter();
        }
        self.here.next()
    }

    /// The next item if it is here already.
    pub(super) fn next_here(&mut self) -> Option<Item> {
        self.here.next()
    }
}

fn read(mut lines: Lines, reader: &JsonReader, sender: &Sender<Vec<Item>>) {
    let mut items = Vec::new();
    loop {
        let (item, last) = match lines.next() {
            Ok(None) => (None, true),
            Err(error) => (Some(Item::Failed(error)), true),
            Ok(Some(line)) => (item_of(&line, reader), false),
        };
        items.extend(item);
        let is_time = last || items.len() == TOGETHER || !lines.is_ready();
        // No receiver: the command has ended.
        if is_time && !items.is_empty() && sender.blocking_send(std::mem::take(&mut items)).is_err() {
            return;
        }
        if last {
            return;
        }
    }
}

/// What comes of a line; none if it is blank.
fn item_of(line: &Line<'_>, reader: &JsonReader) -> Option<Item> {
    let number = line.number;
    match &line.text {
        Ok(text) if text.trim_ascii().is_empty() => None,
        Ok(text) => Some(match reader.read(text) {
            Ok((event, arrays)) => Item::Event { line: number, event, arrays: arrays as u64 },
            Err(error) => Item::Bad { line: number, message: error.to_string() },
        }),
        Err(message) => Some(Item::Bad { line: number, message: message.clone() }),
    }
}
