//! Runs a scenario with real brokers.

use crate::RealError;
use crate::client::{Books, Person, Session};
use crate::network::{Network, Plans};
use crate::oracle::Oracle;
use crate::proxy::Wire;
use crate::refuse::only_virtual;
use enroute_client::NodeStatus;
use enroute_netsim::{LinkSettings, Scenario, ScenarioError, Settle, Step, Traffic, read_events, read_filter, seeded};
use rand::RngExt;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep_until, timeout_at};

/// No answer takes longer: far above every wait of a broker.
const ANSWER: Duration = Duration::from_secs(60);

/// What a run needs beside the scenario.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The program `enroute`.
    pub program: PathBuf,
    /// Where the brokers keep what they keep, and what they log.
    pub folder: PathBuf,
    /// Everything random comes from this.
    pub seed: u64,
    /// Whether each broker is in a network namespace of its own.
    pub namespaces: bool,
}

/// A scenario under way.
pub(crate) struct Run {
    pub(crate) scenario: Scenario,
    pub(crate) seed: u64,
    pub(crate) network: Network,
    pub(crate) people: Vec<Person>,
    pub(crate) books: Books,
    pub(crate) traffic: Traffic,
    /// Requests whose answers somebody waits for.
    pub(crate) asked: JoinSet<()>,
    pub(crate) settles: Vec<Settle>,
    pub(crate) started: Instant,
    /// Whose turn it is to publish.
    pub(crate) turn: usize,
    /// What the brokers said last.
    pub(crate) statuses: BTreeMap<usize, NodeStatus>,
}

impl Run {
    /// Starts the brokers of a scenario, and the clients that it names.
    pub(crate) async fn start(scenario: Scenario, settings: Settings) -> Result<Run, RealError> {
        if let Some(what) = only_virtual(&scenario) {
            return Err(RealError::OnlyVirtual { what });
        }
        let Settings { program, folder, seed, namespaces } = settings;
        let plans = Plans {
            brokers: scenario.topology.names()?,
            links: wires(scenario.topology.edges(&mut seeded(seed, "topology"))?, &scenario.links, seed),
            dial: scenario.links.dial,
            program,
            folder,
            keep_alive_ms: scenario.times.keep_alive_ms,
            merge: scenario.merge,
            namespaces,
        };
        let network = Network::new(plans).await?;
        let traffic = Traffic::over(scenario.domain, seeded(seed, "traffic"));
        let mut run = Run {
            scenario,
            seed,
            network,
            people: Vec::new(),
            books: Books::default(),
            traffic,
            asked: JoinSet::new(),
            settles: Vec::new(),
            started: Instant::now(),
            turn: 0,
            statuses: BTreeMap::new(),
        };
        run.network.start_all().await?;
        run.disturb();
        run.add_clients().await?;
        Ok(run)
    }

    /// Does all steps.
    pub(crate) async fn steps(&mut self) -> Result<(), RealError> {
        for (number, step) in std::mem::take(&mut self.scenario.steps).into_iter().enumerate() {
            self.step(number, step).await?;
        }
        self.answers(Instant::now() + ANSWER).await;
        self.statuses = self.network.look().await;
        Ok(())
    }

    /// Draws what the simulator draws, in its order.
    async fn add_clients(&mut self) -> Result<(), RealError> {
        for plan in std::mem::take(&mut self.scenario.clients) {
            let home = self.broker(&plan.broker)?;
            let client = self.add_client(plan.name, home).await?;
            for (name, text) in &plan.advertise {
                self.advertise(client, name, read_filter(text)?).await;
            }
            for (name, text) in &plan.subscribe {
                self.subscribe(client, name, read_filter(text)?).await;
            }
        }
        for home in 0..self.scenario.topology.names()?.len() {
            for number in 1..=self.scenario.clients_per_broker {
                let client = self.add_client(format!("{}-{number}", self.network.name(home)), home).await?;
                for number in 1..=self.scenario.subscriptions_per_client {
                    let filter = self.traffic.filter();
                    self.subscribe(client, &format!("s{number}"), filter).await;
                }
            }
        }
        Ok(())
    }

    async fn add_client(&mut self, name: String, home: usize) -> Result<usize, RealError> {
        if self.people.iter().any(|person| person.name == name) {
            return Err(ScenarioError::NameTwice { name }.into());
        }
        let (subscriptions, advertisements) = (BTreeMap::new(), BTreeMap::new());
        self.people.push(Person { name, home, session: None, sessions: 0, subscriptions, advertisements });
        self.books.with(|oracle| oracle.add_client(home));
        let client = self.people.len() - 1;
        self.connect(client).await;
        Ok(client)
    }

    /// Connects a client that is away, if its broker is up, and places again all that it wants.
    async fn connect(&mut self, client: usize) {
        let person = &mut self.people[client];
        let Some(address) = self.network.address(person.home).filter(|_| person.session.is_none()) else { return };
        person.sessions += 1;
        match Session::open(address, self.books.clone(), (client, person.sessions)).await {
            Ok(session) => person.session = Some(session),
            Err(error) => {
                let complaint = format!("{} cannot connect: {error}", person.name);
                return self.books.complain(complaint);
            }
        }
        for (name, filter) in self.people[client].advertisements.clone() {
            self.advertise(client, &name, filter).await;
        }
        for (name, filter) in self.people[client].subscriptions.clone() {
            self.subscribe(client, &name, filter).await;
        }
    }

    async fn connect_all(&mut self) {
        for client in 0..self.people.len() {
            self.connect(client).await;
        }
    }

    /// Ends a client's connection.
    async fn disconnect(&mut self, client: usize) {
        if let Some(session) = self.people[client].session.take() {
            self.books.with(|oracle| oracle.book.session_ends(client));
            session.end().await;
        }
    }

    /// Something is done to brokers or links.
    fn disturb(&self) {
        let parts = self.network.parts();
        self.books.with(|oracle| oracle.disturb(parts));
    }

    async fn step(&mut self, number: usize, step: Step) -> Result<(), RealError> {
        match step {
            Step::Settle { within_ms } => self.settle(number, within_ms).await,
            Step::Wait { ms, us } => {
                sleep_until(Instant::now() + Duration::from_millis(ms) + Duration::from_micros(us)).await;
            }
            Step::Subscribe { client, name, filter: text, wait } => {
                let client = self.client(&client)?;
                let filter = text.map_or_else(|| Ok(self.traffic.filter()), |text| read_filter(&text))?;
                self.subscribe(client, &name, filter).await;
                if wait {
                    self.answers(Instant::now() + ANSWER).await;
                }
            }
            Step::Unsubscribe { client, name } => {
                let client = self.client(&client)?;
                self.unsubscribe(client, &name).await;
            }
            Step::UnsubscribeAll => {
                for client in 0..self.people.len() {
                    for name in self.people[client].subscriptions.clone().into_keys() {
                        self.unsubscribe(client, &name).await;
                    }
                }
            }
            Step::Advertise { client, name, filter: text } => {
                let client = self.client(&client)?;
                let filter = text.map_or_else(|| Ok(self.traffic.broad_filter()), |text| read_filter(&text))?;
                self.advertise(client, &name, filter).await;
            }
            Step::Unadvertise { client, name } => {
                let client = self.client(&client)?;
                self.unadvertise(client, &name).await;
            }
            Step::Disconnect { client } => {
                let client = self.client(&client)?;
                self.disconnect(client).await;
            }
            Step::Connect { client } => {
                let client = self.client(&client)?;
                self.connect(client).await;
            }
            Step::ConnectAll => self.connect_all().await,
            Step::Publish { client, event, count, gap_us } => self.publish_some(client, event, count, gap_us).await?,
            Step::Replay { file, by, clients, gap_us, limit } => {
                let events = read_events(&self.scenario.folder.join(&file))?;
                self.replay(&events[..limit.unwrap_or(events.len()).min(events.len())], &by, &clients, gap_us).await?;
            }
            Step::Cut { link } => {
                let link = self.link(link)?;
                self.network.look().await;
                self.network.cut(link);
                self.disturb();
            }
            Step::Heal { link } => {
                let link = self.link(link)?;
                self.heal(link);
            }
            Step::HealAll => (0..self.network.links().count()).for_each(|link| self.heal(link)),
            Step::Partition { groups } => self.partition(groups).await?,
            Step::Crash { broker } => {
                let broker = self.broker(&broker)?;
                self.crash(broker).await?;
            }
            Step::Restart { broker } => {
                let broker = self.broker(&broker)?;
                self.restart(broker).await?;
            }
            Step::RestartAll => {
                for broker in 0..self.scenario.topology.names()?.len() {
                    self.restart(broker).await?;
                }
            }
            Step::Expect { client, received } => self.expect(&client, received)?,
            // What needs more than a network can say of itself, or a way into it. All are refused before anything starts.
            other => return Err(RealError::OnlyVirtual { what: crate::refuse::name(&other) }),
        }
        Ok(())
    }

    async fn settle(&mut self, step: usize, within_ms: Option<u64>) {
        let within = Duration::from_millis(within_ms.unwrap_or(60_000));
        let deadline = Instant::now() + within;
        let answered = self.answers(deadline).await;
        match self.network.settle(deadline.saturating_duration_since(Instant::now())).await {
            Ok((took, statuses)) => {
                self.settles.push(Settle { step, took_us: took.as_micros() as u64, ..Settle::default() });
                self.statuses = statuses;
                if answered && self.deliveries(deadline).await {
                    self.books.with(Oracle::judge);
                }
            }
            Err(error) => self.books.complain(format!("step {step}: {error}")),
        }
    }

    /// Waits for all answers; complains if they do not come in time.
    async fn answers(&mut self, deadline: Instant) -> bool {
        while let Ok(answer) = timeout_at(deadline, self.asked.join_next()).await {
            match answer {
                None => return true,
                Some(Ok(())) => {}
                Some(Err(error)) => self.books.complain(format!("a request has failed: {error}")),
            }
        }
        let open = self.asked.len();
        self.books.complain(format!("{open} requests are not answered in time"));
        false
    }

    /// Waits until all that the brokers have handed to clients' connections has come.
    async fn deliveries(&mut self, deadline: Instant) -> bool {
        let mut ticks = interval(Duration::from_millis(5));
        loop {
            let late = self.people.iter().find_map(|person| {
                let session = person.session.as_ref()?;
                let clients = &self.statuses.get(&person.home)?.clients;
                let sent = clients.iter().find(|it| it.peer_id == session.peer_id)?.delivered;
                let received = session.received();
                (sent > received).then(|| format!("{} got {received} deliveries of {sent}", person.name))
            });
            let Some(late) = late else { return true };
            if Instant::now() > deadline {
                self.books.complain(late);
                return false;
            }
            ticks.tick().await;
        }
    }

    fn heal(&mut self, link: usize) {
        self.network.heal(link);
        self.disturb();
    }

    /// Cuts all links between groups; brokers that are named in no group make one together.
    async fn partition(&mut self, groups: Vec<Vec<String>>) -> Result<(), RealError> {
        let mut group_of = BTreeMap::new();
        for (number, group) in groups.iter().enumerate() {
            for name in group {
                group_of.insert(self.broker(name)?, number);
            }
        }
        self.network.look().await;
        let links: Vec<[usize; 2]> = self.network.links().collect();
        for (link, ends) in links.into_iter().enumerate() {
            if group_of.get(&ends[0]) != group_of.get(&ends[1]) {
                self.network.cut(link);
            }
        }
        self.disturb();
        Ok(())
    }

    fn clients_of(&self, broker: usize) -> Vec<usize> {
        (0..self.people.len()).filter(|&client| self.people[client].home == broker).collect()
    }

    async fn crash(&mut self, broker: usize) -> Result<(), RealError> {
        self.network.look().await;
        self.network.kill(broker).await?;
        self.disturb();
        for client in self.clients_of(broker) {
            self.disconnect(client).await;
        }
        Ok(())
    }

    async fn restart(&mut self, broker: usize) -> Result<(), RealError> {
        if self.network.runs(broker) {
            return Ok(());
        }
        self.network.start(broker).await?;
        self.disturb();
        for client in self.clients_of(broker) {
            self.connect(client).await;
        }
        Ok(())
    }

    fn expect(&self, client: &str, received: u64) -> Result<(), RealError> {
        let number = self.client(client)?;
        let verdict = self.books.with(|oracle| oracle.book.verdicts()[number]);
        if let Some(wrong) = verdict.differs(received) {
            self.books.complain(format!("{client} {wrong}"));
        }
        Ok(())
    }

    fn broker(&self, name: &str) -> Result<usize, RealError> {
        let place = self.scenario.topology.names()?.iter().position(|known| known == name);
        Ok(place.ok_or_else(|| ScenarioError::UnknownBroker { name: name.to_owned() })?)
    }

    pub(crate) fn client(&self, name: &str) -> Result<usize, RealError> {
        let place = self.people.iter().position(|person| person.name == name);
        Ok(place.ok_or_else(|| ScenarioError::UnknownClient { name: name.to_owned() })?)
    }

    fn link(&self, [from, to]: [String; 2]) -> Result<usize, RealError> {
        let ends = [self.broker(&from)?, self.broker(&to)?];
        let place = self.network.links().position(|link| link == ends || link == [ends[1], ends[0]]);
        Ok(place.ok_or(ScenarioError::UnknownLink { from, to })?)
    }
}

/// Each link's delay, drawn from the seed.
fn wires(edges: Vec<[usize; 2]>, links: &LinkSettings, seed: u64) -> Vec<([usize; 2], Wire)> {
    let mut random = seeded(seed, "wires");
    let [from, to] = links.delay_us;
    let mut wire = || Wire {
        delay: Duration::from_micros(random.random_range(from.min(to)..=from.max(to))),
        bandwidth: links.bandwidth,
    };
    edges.into_iter().map(|ends| (ends, wire())).collect()
}

/// Runs a scenario with processes of a program, and reports. Must be called within a tokio runtime.
///
/// # Errors
/// If the scenario asks for what real brokers cannot do, or a broker does not start. What the brokers do wrong is no error but
/// stands in the report.
pub async fn run(scenario: Scenario, settings: Settings) -> Result<enroute_netsim::Report, RealError> {
    let mut run = Run::start(scenario, settings).await?;
    run.steps().await?;
    let report = run.report();
    for client in 0..run.people.len() {
        run.disconnect(client).await;
    }
    Ok(report)
}

/// The program beside another one, as cargo puts them.
pub fn beside(program: &Path, name: &str) -> PathBuf {
    program.with_file_name(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}
