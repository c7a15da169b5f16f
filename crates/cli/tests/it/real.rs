//! Networks of real brokers over links that can be cut: a scenario of the simulator, chains whose brokers are killed, and a link
//! that is reset all the time.

use crate::files::Scratch;
use enroute_client::{Builder, Client, Delivery};
use enroute_filter::{Event, Filter, ValueRef};
use enroute_netsim::{ClientLine, Dial, Report, Run, Scenario, Step};
use enroute_real::{Network, Plans, Settings, Wire, run};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, interval, timeout, timeout_at};

/// Longer than any healing takes; a test that waits for it has failed.
const DEADLINE: Duration = Duration::from_secs(60);

fn program() -> std::path::PathBuf {
    env!("CARGO_BIN_EXE_enroute").into()
}

/// What clients got, must and may taken together: which of the two it is depends on moments.
fn got(report: &Report) -> Vec<(&str, u64)> {
    let count = |line: &ClientLine| line.verdict.received + line.verdict.optional;
    report.clients.iter().map(|line| (line.client.as_str(), count(line))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scenario_gives_the_same_deliveries_in_virtual_and_in_real_time() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../netsim/scenarios/january-with-faults.toml");
    let mut scenario = Scenario::read(Path::new(path)).expect("a scenario");
    scenario.times.keep_alive_ms = Some(300);
    // The whole month four times takes too long here.
    scenario.steps.retain(|step| !matches!(step, Step::Expect { .. }));
    for step in &mut scenario.steps {
        if let Step::Replay { limit, .. } = step {
            *limit = Some(2_000);
        }
    }
    let simulated = Run::new(scenario.clone(), 1).and_then(Run::run).expect("it runs");
    let scratch = Scratch::new("real-january");
    let settings = Settings { program: program(), folder: scratch.path("brokers").into(), seed: 1, namespaces: false };
    let real = run(scenario, settings).await.expect("it runs");
    assert!(simulated.is_good(), "{simulated}");
    assert!(real.is_good(), "{real}");
    assert_eq!((real.total.lost(), real.publications), (0, 8_000), "{real}");
    assert_eq!(got(&real), got(&simulated), "{real}");
    assert!(real.total.received > 1_000, "{real}");
}

/// A chain of brokers with a client at each, which subscribes to everything.
struct Chain {
    network: Network,
    clients: Vec<Option<Client>>,
    round: i64,
    _scratch: Scratch,
}

/// All that the chain's clients publish.
fn everything() -> Filter {
    Filter::parse("round >= 0").expect("a filter")
}

impl Chain {
    async fn start(length: usize) -> Chain {
        let scratch = Scratch::new(&format!("real-chain-{length}"));
        let plans = Plans {
            brokers: (0..length).map(|place| format!("b{place}")).collect(),
            links: (1..length).map(|place| ([place - 1, place], Wire::default())).collect(),
            dial: Dial::One,
            program: program(),
            folder: scratch.path("brokers").into(),
            keep_alive_ms: Some(300),
            merge: false,
            namespaces: false,
        };
        let network = Network::new(plans).await.expect("ports");
        let mut chain = Chain { network, clients: vec![None; length], round: 0, _scratch: scratch };
        chain.network.start_all().await.expect("they start");
        for place in 0..length {
            chain.connect(place).await;
        }
        chain.network.settle(DEADLINE).await.expect("it settles");
        chain
    }

    /// A new client at a broker. Its subscription is asked for; the answer may need brokers that are not there yet.
    async fn connect(&mut self, place: usize) {
        let address = self.network.address(place).expect("it runs");
        let client = Builder::new(address).connect().await.expect("it serves clients");
        let subscribing = client.clone();
        self.clients[place] = Some(client);
        tokio::spawn(async move { subscribing.subscribe("all", everything()).await });
    }

    /// Kills brokers, starts them again at once, and waits until events go in all directions again, from whoever to whomever.
    async fn kill_and_restart(&mut self, places: &[usize]) -> Duration {
        for &place in places {
            self.clients[place] = None;
            self.network.kill(place).await.expect("it dies");
        }
        let start = Instant::now();
        for &place in places {
            self.network.start(place).await.expect("it starts");
            self.connect(place).await;
        }
        let mut rounds = interval(Duration::from_millis(50));
        loop {
            rounds.tick().await;
            if self.all_directions().await {
                return start.elapsed();
            }
            assert!(start.elapsed() < DEADLINE, "{places:?} killed: some direction stays dead");
        }
    }

    /// Publishes at each broker, and says whether every client has got every event, and none twice, within a moment.
    async fn all_directions(&mut self) -> bool {
        self.round += 1;
        let clients: Vec<&Client> = self.clients.iter().flatten().collect();
        for (place, client) in clients.iter().enumerate() {
            let event = Event::builder().attribute("round", self.round).attribute("from", place as i64);
            // Its receipt would wait for brokers that are still on their way.
            client.publish_nowait(event.build().expect("an event")).await.expect("the broker is there");
        }
        let until = Instant::now() + Duration::from_millis(500);
        for client in &clients {
            let mut missing: BTreeSet<i64> = (0..clients.len() as i64).collect();
            while !missing.is_empty() {
                let Ok(Some(delivery)) = timeout_at(until, client.next()).await else { return false };
                let [round, from] = ["round", "from"].map(|name| integer(&delivery, name));
                if round == self.round {
                    assert!(missing.remove(&from), "twice: event {} of round {round}", delivery.id);
                }
            }
        }
        true
    }
}

fn integer(delivery: &Delivery, name: &str) -> i64 {
    match delivery.event.get(name) {
        Some(ValueRef::Int(number)) => number,
        other => panic!("{name} is {other:?}"),
    }
}

/// One broker or two at a time, wherever they stand in the chain.
#[tokio::test(flavor = "multi_thread")]
async fn chains_deliver_in_all_directions_soon_after_brokers_were_killed() {
    let chains = (3..=6).map(|length| async move {
        let mut chain = Chain::start(length).await;
        for first in 0..length {
            for second in first..length {
                let places: BTreeSet<usize> = [first, second].into();
                let places: Vec<usize> = places.into_iter().collect();
                let took = chain.kill_and_restart(&places).await;
                println!("{length} brokers, {places:?} killed: all directions after {took:?}");
            }
        }
    });
    futures::future::join_all(chains).await;
}

/// While one broker tells ten others ten thousand filters each, two hundred of their connections are reset.
#[tokio::test(flavor = "multi_thread")]
async fn resets_in_the_middle_of_a_sync_lose_no_filter() {
    const FILTERS: u64 = 10_000;
    const RESETS: usize = 200;
    const PUBLISHERS: usize = 10;
    let scratch = Scratch::new("real-resets");
    let plans = Plans {
        brokers: (0..=PUBLISHERS).map(|place| format!("b{place}")).collect(),
        links: (1..=PUBLISHERS).map(|place| ([0, place], Wire::default())).collect(),
        dial: Dial::Both,
        program: program(),
        folder: scratch.path("brokers").into(),
        keep_alive_ms: Some(300),
        merge: false,
        namespaces: false,
    };
    let mut network = Network::new(plans).await.expect("ports");
    network.start_all().await.expect("they start");
    let connect = |network: &Network, place: usize| Builder::new(network.address(place).expect("it runs")).connect();
    let mut publishers = Vec::new();
    for place in 1..=PUBLISHERS {
        let publisher = connect(&network, place).await.expect("it serves clients");
        // Who has published is told what others want.
        publisher.publish(Event::builder().attribute("n", -1).build().expect("an event")).await.expect("published");
        publishers.push(publisher);
    }
    let subscriber = connect(&network, 0).await.expect("it serves clients");
    let mut asked = tokio::task::JoinSet::new();
    for number in 0..FILTERS {
        let subscriber = subscriber.clone();
        let filter = Filter::parse(&format!("n = {number}")).expect("a filter");
        asked.spawn(async move { subscriber.subscribe(&number.to_string(), filter).await });
    }
    // So seldom that links come up in between, and there is something to interrupt.
    let (mut ticks, deadline) = (interval(Duration::from_millis(100)), Instant::now() + DEADLINE);
    while network.struck() < RESETS {
        ticks.tick().await;
        (0..PUBLISHERS).for_each(|link| network.reset(link));
        while let Some(answer) = asked.try_join_next() {
            answer.expect("no panic").expect("not refused");
        }
        assert!(Instant::now() < deadline, "only {} connections to reset", network.struck());
    }
    let open = asked.len();
    println!("{RESETS} connections reset, {open} of {FILTERS} subscriptions not answered yet");
    while let Some(answer) = timeout(DEADLINE, asked.join_next()).await.expect("answered in time") {
        answer.expect("no panic").expect("not refused");
    }
    let (_, statuses) = network.settle(DEADLINE).await.expect("it settles, with as many filters held as announced");
    for (place, publisher) in (1..).zip(&publishers) {
        let held: u64 = statuses[&place].broker.brokers.iter().map(|broker| broker.interest).sum();
        assert_eq!(held, FILTERS, "at {}", network.name(place));
        let number = FILTERS - place as u64;
        let event = Event::builder().attribute("n", number as i64).build().expect("an event");
        publisher.publish(event).await.expect("published");
        let delivery = timeout(DEADLINE, subscriber.next()).await.expect("in time").expect("connected");
        assert_eq!(*delivery.subscriptions, [std::sync::Arc::from(number.to_string())]);
    }
}
