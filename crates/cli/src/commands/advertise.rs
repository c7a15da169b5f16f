//! `enroute advertise`: hold an advertisement.

use crate::connection::{BrokerOption, advertise_all, tell_notices};
use crate::failure::Failure;
use crate::filter_text;
use crate::runtime::{Interrupts, this_thread};
use clap::Args;
use enroute_filter::Filter;

/// The options.
#[derive(Args)]
pub(crate) struct Options {
    /// What will be published; of several filters any may match
    #[arg(value_name = "FILTER", required = true)]
    filters: Vec<String>,
    #[command(flatten)]
    broker: BrokerOption,
}

/// An advertisement lasts as long as the session that made it. While one stands here, its broker knows what others want of
/// it, and a publisher that comes has not to wait for that.
pub(crate) fn run(options: Options) -> Result<(), Failure> {
    let filters = filter_text::parse_all(&options.filters)?;
    this_thread(async {
        match Interrupts::new()?.cut_short(hold(&options.broker, filters)).await {
            // The broker takes back what was advertised when it sees the connection end.
            Err(Failure::Interrupted) => Ok(()),
            other => other,
        }
    })
}

/// Makes the advertisements; returns when something goes wrong.
async fn hold(broker: &BrokerOption, filters: Vec<Filter>) -> Result<(), Failure> {
    let client = broker.connect_for_good().await?;
    advertise_all(&client, filters).await?;
    tell_notices(&client).await;
    Err(Failure::new("the session with the broker is over"))
}
