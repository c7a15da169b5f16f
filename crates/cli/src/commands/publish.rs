//! `enroute pub`: publish JSON lines.

mod feed;
mod pace;

use crate::connection::{BrokerOption, advertise_all, say_goodbye};
use crate::failure::Failure;
use crate::output::tell;
use crate::runtime::{Interrupts, this_thread};
use crate::table::{count, counted};
use crate::{arguments, filter_text};
use clap::Args;
use enroute_broker::Receipt;
use enroute_client::{Client, ClientError, Publication};
use enroute_filter::{Filter, JsonReader};
use feed::{Feed, Item};
use indicatif::{ProgressBar, ProgressStyle};
use pace::Pace;
use std::collections::VecDeque;
use std::future::pending;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// Publications on their way whose receipts are still to come.
const WINDOW: usize = 1024;

/// How long receipts are waited for when the rest has been cut short.
const LAST_RECEIPTS: Duration = Duration::from_secs(2);

/// The options.
#[derive(Args)]
pub(crate) struct Options {
    /// JSON lines, an event each, plain or gzip; none or - is standard input
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    broker: BrokerOption,
    /// Read strings of this attribute as times (RFC 3339); repeatable
    #[arg(long = "time", value_name = "ATTR")]
    times: Vec<String>,
    /// Stop at the first bad line, and take an array for one, instead of reporting and going on
    #[arg(long)]
    strict: bool,
    /// Publish at most this many events a second
    #[arg(long, value_name = "N", value_parser = arguments::positive)]
    rate: Option<f64>,
    /// Advertise first that what is published matches this filter; repeatable. Without it anything may be published
    #[arg(long, value_name = "FILTER")]
    advertise: Vec<String>,
}

/// What has come of the lines so far.
#[derive(Default)]
struct Tally {
    published: u64,
    /// Sum over the events of the brokers they were sent to.
    destinations: u64,
    /// Events that went out before all brokers had said what they want.
    incomplete: u64,
    /// Lines that are no event, and events that were refused.
    bad: u64,
    /// Arrays left out, which are no attributes.
    arrays: u64,
}

/// One run of the command.
struct Publisher {
    client: Client,
    feed: Feed,
    strict: bool,
    /// When the next event may go; none if it always may.
    pace: Option<Pace>,
    /// What is on its way, with the lines it came from, in order.
    receipts: VecDeque<(u64, Publication)>,
    progress: ProgressBar,
    tally: Tally,
}

pub(crate) fn run(options: Options) -> Result<(), Failure> {
    let filters = filter_text::parse_all(&options.advertise)?;
    let reader = JsonReader { times: options.times, strict: options.strict, ..JsonReader::default() };
    let feed = Feed::open(options.file.as_deref(), reader)?;
    this_thread(async {
        let mut interrupts = Interrupts::new()?;
        let client = interrupts.cut_short(connect(&options.broker, filters)).await?;
        let mut publisher = Publisher {
            client,
            feed,
            strict: options.strict,
            pace: options.rate.map(Pace::new),
            receipts: VecDeque::new(),
            progress: progress(),
            tally: Tally::default(),
        };
        let started = Instant::now();
        let result = interrupts.cut_short(publisher.publish_all()).await;
        publisher.finish(started.elapsed()).await;
        match result {
            Ok(()) if publisher.tally.bad > 0 => Err(Failure::Reported),
            other => other,
        }
    })
}

/// A session that has made its advertisements.
async fn connect(broker: &BrokerOption, filters: Vec<Filter>) -> Result<Client, Failure> {
    let client = broker.connect().await?;
    advertise_all(&client, filters).await?;
    Ok(client)
}

impl Publisher {
    /// Publishes all there is; receipts are taken in while later events are already on their way.
    async fn publish_all(&mut self) -> Result<(), Failure> {
        let mut more = true;
        while more || !self.receipts.is_empty() {
            tokio::select! {
                (line, receipt) = first(&mut self.receipts) => more &= self.take_in(line, receipt)?,
                item = next(&mut self.feed, &self.pace), if more && self.receipts.len() < WINDOW => match item {
                    None => more = false,
                    Some(item) => more = self.publish_with_what_is_here(item).await?,
                },
            }
        }
        Ok(())
    }

    /// Publishes an item, and if nothing says when, those that have been read with it; whether to go on.
    async fn publish_with_what_is_here(&mut self, item: Item) -> Result<bool, Failure> {
        let mut next = Some(item);
        while let Some(item) = next {
            if !self.publish(item).await? {
                return Ok(false);
            }
            let more = self.pace.is_none() && self.receipts.len() < WINDOW;
            next = if more { self.feed.next_here() } else { None };
        }
        Ok(true)
    }

    /// Publishes an item; whether to go on.
    async fn publish(&mut self, item: Item) -> Result<bool, Failure> {
        match item {
            Item::Event { line, event, arrays } => {
                self.pace.as_mut().map(Pace::advance);
                self.note_arrays(line, arrays);
                let publication = self.client.publish_nowait(event).await.map_err(|error| lost(&error))?;
                self.receipts.push_back((line, publication));
                Ok(true)
            }
            Item::Bad { line, message } => Ok(self.refuse(line, &message)),
            Item::Failed(error) => Err(Failure::new("cannot read on").because(&error)),
        }
    }

    /// Takes in what became of an event; whether to go on.
    fn take_in(&mut self, line: u64, receipt: Result<Receipt, ClientError>) -> Result<bool, Failure> {
        match receipt {
            Ok(receipt) => {
                self.tally.published += 1;
                self.tally.destinations += u64::from(receipt.destinations);
                self.tally.incomplete += u64::from(!receipt.complete);
                self.progress.inc(1);
                Ok(true)
            }
            Err(error @ (ClientError::Refused(_) | ClientError::Unsendable(_))) => {
                Ok(self.refuse(line, &error.to_string()))
            }
            Err(error) => Err(lost(&error)),
        }
    }

    async fn take_in_the_rest(&mut self) -> Result<(), Failure> {
        while !self.receipts.is_empty() {
            let (line, receipt) = first(&mut self.receipts).await;
            self.take_in(line, receipt)?;
        }
        Ok(())
    }

    /// Reports a line that is not published; whether to go on.
    fn refuse(&mut self, line: u64, message: &str) -> bool {
        self.tally.bad += 1;
        self.progress.suspend(|| tell(format_args!("error: line {line}: {message}")));
        !self.strict
    }

    /// Warns of the first array.
    fn note_arrays(&mut self, line: u64, arrays: u64) {
        if arrays > 0 && self.tally.arrays == 0 {
            let warning = "warning: arrays are no attributes and are left out; --strict refuses them";
            self.progress.suspend(|| tell(format_args!("{warning} (first in line {line})")));
        }
        self.tally.arrays += arrays;
    }

    /// Ends the session and says what has come of it. What was on its way when something cut the rest short is counted too.
    async fn finish(&mut self, took: Duration) {
        let _ = timeout(LAST_RECEIPTS, self.take_in_the_rest()).await;
        say_goodbye(&self.client).await;
        self.progress.finish_and_clear();
        let Tally { published, destinations, incomplete, bad, arrays } = &self.tally;
        let seconds = took.as_secs_f64();
        let mut text = format!(
            "published {} in {seconds:.2} s, {} to other brokers",
            counted(*published, "event", "events"),
            count(*destinations)
        );
        let rest = [
            (*incomplete, counted(*incomplete, "event", "events") + " sent before all brokers had said what they want"),
            (*bad, counted(*bad, "line", "lines") + " not published"),
            (*arrays, counted(*arrays, "array", "arrays") + " left out"),
        ];
        for (number, what) in rest {
            if number > 0 {
                text += &format!(", {what}");
            }
        }
        tell(text);
    }
}

/// The receipt of what was published first. Cancelling the wait loses nothing; without anything on its way it is endless.
async fn first(receipts: &mut VecDeque<(u64, Publication)>) -> (u64, Result<Receipt, ClientError>) {
    let Some((line, publication)) = receipts.front_mut() else { return pending().await };
    let taken = (*line, publication.await);
    receipts.pop_front();
    taken
}

/// The next item, when its time has come. Cancelling the wait changes nothing.
async fn next(feed: &mut Feed, pace: &Option<Pace>) -> Option<Item> {
    if let Some(pace) = pace {
        pace.wait().await;
    }
    feed.next().await
}

/// Shown on a terminal only.
fn progress() -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {human_pos} events published, {per_sec}");
    ProgressBar::new_spinner().with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
}

fn lost(error: &ClientError) -> Failure {
    Failure::new("publishing has stopped")
        .because(error)
        .hint("what had no receipt yet may or may not have been published")
}
