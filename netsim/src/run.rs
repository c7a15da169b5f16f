//! Runs a scenario.

use crate::report::{Report, Settle};
use crate::scenario::{Scenario, ScenarioError};
use crate::seeded;
use crate::step::Step;
use crate::tally::Count;
use crate::traffic::{Traffic, read_event, read_events, read_filter};
use crate::world::{Settings, World};
use enroute_broker::{Config, MergingConfig};
use enroute_filter::{Filter, ValueRef};
use rand::RngExt;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Nobody has anything to say for so long: longer than the longest pause between two attempts at anything.
const QUIET: Duration = Duration::from_secs(6);

/// No answer takes longer: far above every wait of a broker.
const ANSWER: Duration = Duration::from_secs(60);

/// A scenario under way.
pub struct Run {
    scenario: Scenario,
    seed: u64,
    world: World,
    traffic: Traffic,
    settles: Vec<Settle>,
    /// Whose turn it is to publish.
    turn: usize,
}

impl Run {
    /// Builds the network of a scenario; nothing runs yet.
    ///
    /// # Errors
    /// What is wrong with the scenario.
    pub fn new(scenario: Scenario, seed: u64) -> Result<Run, ScenarioError> {
        let mut brokers = scenario.topology.names()?;
        let mut uplinks = BTreeMap::new();
        if let Some(leaves) = &scenario.leaves {
            let core = brokers.len();
            uplinks.extend((core..).zip(leaves.uplinks(core, &mut seeded(seed, "leaves"))));
            brokers.extend(leaves.names());
        }
        let merging = MergingConfig { perfect: scenario.merge, imperfect: None };
        let mut links = scenario.topology.edges(&mut seeded(seed, "topology"))?;
        let mut clones = BTreeMap::new();
        brokers.extend(scenario.leaf_plans.iter().map(|leaf| leaf.name.clone()));
        brokers.extend(scenario.clones.iter().map(|clone| clone.name.clone()));
        let mut places = BTreeMap::new();
        for (place, name) in brokers.iter().enumerate() {
            if places.insert(name.clone(), place).is_some() {
                return Err(ScenarioError::NameTwice { name: name.clone() });
            }
        }
        let place = |name: &String| {
            places.get(name).copied().ok_or_else(|| ScenarioError::UnknownBroker { name: name.clone() })
        };
        for leaf in &scenario.leaf_plans {
            uplinks.insert(place(&leaf.name)?, leaf.uplinks.iter().map(place).collect::<Result<_, _>>()?);
        }
        for clone in &scenario.clones {
            clones.insert(place(&clone.name)?, place(&clone.of)?);
            for to in &clone.links {
                links.push([place(&clone.name)?, place(to)?]);
            }
        }
        let settings = Settings {
            brokers,
            uplinks,
            links,
            clones,
            link: scenario.links.clone(),
            config: Config { merging, ..scenario.times.config() },
            domain: scenario.domain,
            seed,
        };
        let mut world = World::new(settings);
        if scenario.publish_on_answers {
            world.publish_on_answers();
        }
        let traffic = Traffic::over(scenario.domain, seeded(seed, "traffic"));
        Ok(Run { scenario, seed, world, traffic, settles: Vec::new(), turn: 0 })
    }

    /// The network, for traces and progress.
    pub fn world_mut(&mut self) -> &mut World {
        &mut self.world
    }

    /// Starts the network, places what its clients want from the beginning, and does all steps.
    ///
    /// # Errors
    /// If a step names what is not there. What the brokers do wrong is no error but stands in the report.
    pub fn run(self) -> Result<Report, ScenarioError> {
        self.run_and_keep().map(|(report, _)| report)
    }

    /// As [`Run::run`], with the network at the end.
    pub(crate) fn run_and_keep(mut self) -> Result<(Report, World), ScenarioError> {
        match self.scenario.settled {
            true => self.world.start_settled(),
            false => self.world.start_all(),
        }
        self.add_clients()?;
        self.world.go_on();
        let steps = std::mem::take(&mut self.scenario.steps);
        for (number, step) in steps.into_iter().enumerate() {
            self.step(number, step)?;
        }
        let report = Report::of(&mut self.world, &self.scenario.name, self.seed, self.settles);
        Ok((report, self.world))
    }

    fn add_clients(&mut self) -> Result<(), ScenarioError> {
        for plan in std::mem::take(&mut self.scenario.clients) {
            if self.world.client(&plan.name).is_some() {
                return Err(ScenarioError::NameTwice { name: plan.name });
            }
            let broker = self.broker(&plan.broker)?;
            let client = self.world.add_client(&plan.name, broker);
            for (name, text) in &plan.advertise {
                self.world.advertise(client, name, read_filter(text)?);
            }
            for (name, text) in &plan.subscribe {
                self.world.subscribe(client, name, read_filter(text)?);
            }
        }
        self.add_audiences()?;
        for broker in 0..self.world.broker_count() {
            for number in 1..=self.scenario.clients_per_broker {
                let name = format!("{}-{number}", self.world.hosts[broker].name);
                let client = self.world.add_client(&name, broker);
                for number in 1..=self.scenario.subscriptions_per_client {
                    self.world.subscribe(client, &format!("s{number}"), self.traffic.filter());
                }
            }
        }
        self.add_publishers();
        Ok(())
    }

    fn add_publishers(&mut self) {
        let core: Vec<usize> = (0..self.world.broker_count()).filter(|&it| !self.world.is_leaf(it)).collect();
        let publishers = self.scenario.publishers.min(core.len());
        for number in 0..publishers {
            let broker = core[number * core.len() / publishers];
            let name = format!("{}-publisher", self.world.hosts[broker].name);
            let client = self.world.add_client(&name, broker);
            self.world.advertise(client, "anything", Filter::always());
        }
    }

    fn add_audiences(&mut self) -> Result<(), ScenarioError> {
        let mut random = seeded(self.seed, "audiences");
        for (number, audience) in std::mem::take(&mut self.scenario.audiences).into_iter().enumerate() {
            let wanted = read_filter(&audience.subscribe)?;
            let mut core: Vec<usize> = (0..self.world.broker_count()).filter(|&it| !self.world.is_leaf(it)).collect();
            for _ in 0..audience.brokers.min(core.len()) {
                let broker = core.swap_remove(random.random_range(0..core.len()));
                let name = format!("{}-audience-{number}", self.world.hosts[broker].name);
                let client = self.world.add_client(&name, broker);
                self.world.subscribe(client, "audience", wanted.clone());
            }
        }
        Ok(())
    }

    fn step(&mut self, number: usize, step: Step) -> Result<(), ScenarioError> {
        match step {
            Step::Settle { within_ms } => self.settle(number, within_ms),
            Step::Wait { ms, us } => self.world.run_for(Duration::from_millis(ms) + Duration::from_micros(us)),
            Step::Subscribe { client, name, filter, wait } => self.subscribe(&client, &name, filter, wait)?,
            Step::Unsubscribe { client, name } => {
                let client = self.client(&client)?;
                if self.world.subscriptions(client).iter().any(|known| **known == name) {
                    self.world.unsubscribe(client, &name);
                }
            }
            Step::UnsubscribeAll => self.world.unsubscribe_all(),
            Step::Advertise { client, name, filter } => {
                let client = self.client(&client)?;
                let filter = self.filter_or(filter, Traffic::broad_filter)?;
                self.world.advertise(client, &name, filter);
            }
            Step::Unadvertise { client, name } => {
                let client = self.client(&client)?;
                if self.world.advertisements(client).iter().any(|known| **known == name) {
                    self.world.unadvertise(client, &name);
                }
            }
            Step::Disconnect { client } => self.world.disconnect(self.client(&client)?),
            Step::Connect { client } => self.world.connect(self.client(&client)?),
            Step::ConnectAll => self.world.connect_all(),
            Step::StallClient { client, ms, queue } => {
                self.world.stall_client(self.client(&client)?, Duration::from_millis(ms), queue);
            }
            Step::Publish { client, event, count, gap_us } => self.publish(client, event, count, gap_us)?,
            Step::Replay { file, by, clients, gap_us, limit } => {
                let route = |value: &str| clients.get(value).map(String::as_str);
                self.replay(&file, &by, route, gap_us, limit)?;
            }
            Step::Cut { link } => self.world.cut(self.link(&link)?),
            Step::Heal { link } => self.world.heal(self.link(&link)?),
            Step::HealAll => self.world.heal_all(),
            Step::DialAgain { link } => self.world.dial_again_from(self.link(&link)?, self.broker(&link[0])?),
            Step::Slow { link, control_us, events_us, bandwidth } => {
                self.world.slow(self.link(&link)?, [control_us, events_us], bandwidth);
            }
            Step::Stall { link, ms } => self.world.stall(self.link(&link)?, Duration::from_millis(ms)),
            Step::Flap { link, times, down_ms, up_ms } => {
                let [down, up] = [down_ms, up_ms].map(Duration::from_millis);
                self.world.flap(self.link(&link)?, times, down, up);
            }
            Step::Partition { groups } => self.partition(groups)?,
            Step::Crash { broker } => self.world.crash(self.broker(&broker)?),
            Step::Restart { broker } => self.world.start(self.broker(&broker)?),
            Step::RestartAll => self.world.start_all(),
            Step::Chaos(chaos) => chaos.run(&mut self.world, self.seed, number as u64),
            Step::Expect { client, received } => self.expect(&client, received)?,
            Step::ExpectInUse { brokers } => self.world.expect_in_use(brokers),
            Step::CheckFresh => self.world.check_fresh(),
            Step::CheckEmpty => self.world.check_empty(),
        }
        Ok(())
    }

    fn settle(&mut self, step: usize, within_ms: Option<u64>) {
        let bound = Duration::from_millis(within_ms.unwrap_or(60_000));
        match self.world.settle(QUIET, bound) {
            Ok(took) => {
                self.world.note_settled(step);
                let took_us = took.as_micros() as u64;
                let before = self.settles.iter().fold(Settle::default(), |sum, settle| Settle {
                    control: sum.control.plus(settle.control),
                    expected: sum.expected + settle.expected,
                    lost: sum.lost + settle.lost,
                    ..sum
                });
                let all = self.world.control().values().fold(Count::default(), |sum, &kind| sum.plus(kind));
                let total = self.world.total();
                self.settles.push(Settle {
                    step,
                    took_us,
                    control: all.minus(before.control),
                    expected: total.expected - before.expected,
                    lost: total.lost() - before.lost,
                });
            }
            Err(unsettled) => self.world.complain(format!("step {step}: {unsettled}")),
        }
    }

    fn subscribe(&mut self, client: &str, name: &str, filter: Option<String>, wait: bool) -> Result<(), ScenarioError> {
        let client = self.client(client)?;
        let filter = self.filter_or(filter, Traffic::filter)?;
        let ticket = self.world.subscribe(client, name, filter);
        if let Some(ticket) = ticket.filter(|_| wait)
            && let Err(unsettled) = self.world.await_answer(ticket, ANSWER)
        {
            self.world.complain(format!("subscription {name}: {unsettled}"));
        }
        Ok(())
    }

    fn publish(
        &mut self,
        client: Option<String>,
        event: Option<String>,
        count: u64,
        gap_us: u64,
    ) -> Result<(), ScenarioError> {
        let client = client.map(|name| self.client(&name)).transpose()?;
        let event = event.map(|line| read_event(&line)).transpose()?;
        if self.world.client_count() == 0 {
            return Err(ScenarioError::NoClients);
        }
        for _ in 0..count {
            self.turn = (self.turn + 1) % self.world.client_count();
            let client = client.unwrap_or(self.turn);
            match &event {
                Some(event) => self.world.publish(client, event),
                None => self.world.publish(client, &self.traffic.event()),
            };
            self.world.run_for(Duration::from_micros(gap_us));
        }
        Ok(())
    }

    fn replay<'a>(
        &mut self,
        file: &Path,
        by: &str,
        route: impl Fn(&str) -> Option<&'a str>,
        gap_us: u64,
        limit: Option<usize>,
    ) -> Result<(), ScenarioError> {
        let events = read_events(&self.scenario.folder.join(file))?;
        for event in events.iter().take(limit.unwrap_or(usize::MAX)) {
            let value = match event.get(by) {
                Some(ValueRef::String(value)) => value,
                Some(_) | None => "",
            };
            let Some(name) = route(value) else {
                return Err(ScenarioError::UnknownClient { name: format!("{by} = {value}") });
            };
            let client = self.client(name)?;
            self.world.publish(client, event);
            self.world.run_for(Duration::from_micros(gap_us));
        }
        Ok(())
    }

    fn partition(&mut self, groups: Vec<Vec<String>>) -> Result<(), ScenarioError> {
        let groups: Result<Vec<Vec<usize>>, ScenarioError> =
            groups.iter().map(|group| group.iter().map(|name| self.broker(name)).collect()).collect();
        self.world.partition(&groups?);
        Ok(())
    }

    fn expect(&mut self, client: &str, received: u64) -> Result<(), ScenarioError> {
        let number = self.client(client)?;
        if let Some(wrong) = self.world.verdict(number).differs(received) {
            self.world.complain(format!("{client} {wrong}"));
        }
        Ok(())
    }

    fn filter_or(
        &mut self,
        text: Option<String>,
        random: impl FnOnce(&mut Traffic) -> Filter,
    ) -> Result<Filter, ScenarioError> {
        match text {
            Some(text) => read_filter(&text),
            None => Ok(random(&mut self.traffic)),
        }
    }

    fn broker(&self, name: &str) -> Result<usize, ScenarioError> {
        self.world.broker(name).ok_or_else(|| ScenarioError::UnknownBroker { name: name.to_owned() })
    }

    fn client(&self, name: &str) -> Result<usize, ScenarioError> {
        self.world.client(name).ok_or_else(|| ScenarioError::UnknownClient { name: name.to_owned() })
    }

    fn link(&self, [from, to]: &[String; 2]) -> Result<usize, ScenarioError> {
        let link = self.world.link_between(self.broker(from)?, self.broker(to)?);
        link.ok_or_else(|| ScenarioError::UnknownLink { from: from.clone(), to: to.clone() })
    }
}
