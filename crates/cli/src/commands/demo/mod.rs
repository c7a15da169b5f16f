//! `enroute demo`: the whole thing in one process, on a real stream, counted.
//!
//! Six core brokers and two leaves are linked over loopback TCP, six clients subscribe, and each airport publishes its own
//! flights and weather of a month, one of them at a leaf. At the end what came is compared with a direct scan, and what went over each link with a reckoning of
//! the shortest paths.

mod network;
mod reckoning;
mod replay;
mod report;
mod scenario;

use crate::arguments;
use crate::failure::Failure;
use crate::output::tell;
use crate::runtime::{Interrupts, multi_thread};
use clap::Args;
use network::Network;

/// The options.
#[derive(Args)]
pub(crate) struct Options {
    /// Replay at this many times real time, by the hours of the events, instead of as fast as it goes
    #[arg(long, value_name = "TIMES", value_parser = arguments::positive)]
    speed: Option<f64>,
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    multi_thread(async { Interrupts::new()?.cut_short(demonstrate(options)).await })
}

async fn demonstrate(options: &Options) -> Result<(), Failure> {
    let entries = scenario::stream()?;
    let filters = scenario::filters()?;
    let network = Network::start().await?;
    let (core, leaves) = (scenario::CORE, scenario::BROKERS.len() - scenario::CORE);
    let links = scenario::LINKS.len();
    tell(format_args!("{core} core brokers and {leaves} leaves over loopback TCP, {links} links"));

    let replayed = replay::replay(&network, &entries, &filters, options.speed).await?;

    let Some(routes) = network.routes().await? else {
        return Err(Failure::new("a link between the brokers has gone down during the demo"));
    };
    let crossings = network.crossings().await?;
    network.shut_down().await;
    if !reckoning::are_shortest(&routes) {
        return Err(Failure::new("the brokers' routes are not the shortest paths"));
    }
    let expected = reckoning::expect(&entries, &filters, &routes);
    report::print(&report::Outcome { replayed, crossings }, &expected)
}
