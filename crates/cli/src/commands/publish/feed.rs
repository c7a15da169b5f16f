//! Events read ahead by a thread of their own, since reading a file or standard input blocks.

use crate::failure::Failure;
use crate::lines::Lines;
use enroute_filter::{Event, JsonReader};
use std::io;
use std::path::Path;
use std::thread;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Items read ahead at most.
const AHEAD: usize = 1024;

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
    items: Receiver<Item>,
}

impl Feed {
    /// Starts reading. Blank lines are left out.
    pub(super) fn open(file: Option<&Path>, reader: JsonReader) -> Result<Feed, Failure> {
        let lines = Lines::open(file)?;
        let (sender, items) = channel(AHEAD);
        // Not joined: it may be waiting for a line that never comes.
        let spawned = thread::Builder::new().name("lines".to_owned()).spawn(move || read(lines, &reader, &sender));
        spawned.map_err(|error| Failure::new("cannot start a thread").because(&error))?;
        Ok(Feed { items })
    }

    /// The next item; none at the end.
    pub(super) async fn next(&mut self) -> Option<Item> {
        self.items.recv().await
    }
}

fn read(mut lines: Lines, reader: &JsonReader, sender: &Sender<Item>) {
    loop {
        let item = match lines.next() {
            Ok(None) => return,
            Err(error) => Item::Failed(error),
            Ok(Some(line)) => match line.text {
                Ok(text) if text.trim_ascii().is_empty() => continue,
                Ok(text) => match reader.read(text) {
                    Ok((event, arrays)) => Item::Event { line: line.number, event, arrays: arrays as u64 },
                    Err(error) => Item::Bad { line: line.number, message: error.to_string() },
                },
                Err(message) => Item::Bad { line: line.number, message },
            },
        };
        let last = matches!(item, Item::Failed(_));
        // No receiver: the command has ended.
        if sender.blocking_send(item).is_err() || last {
            return;
        }
    }
}
