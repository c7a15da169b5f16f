//! Brokers as processes, and their links.

use crate::RealError;
use crate::process::{Plan, Process, multiaddress};
use crate::proxy::{Proxy, Wire};
use crate::space::Space;
use crate::view::{Traffic, View, counts, within_reach};
use enroute_client::{Multiaddr, NodeStatus};
use enroute_netsim::Dial;
use futures::future::join_all;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// Between two looks at a network that is not settled yet.
const LOOK: Duration = Duration::from_millis(50);

/// What to build.
#[derive(Clone, Debug)]
pub struct Plans {
    /// The names of the brokers.
    pub brokers: Vec<String>,
    /// Links by the places of their ends, and what they do to bytes.
    pub links: Vec<([usize; 2], Wire)>,
    /// Which end dials: the first, or both.
    pub dial: Dial,
    /// The program `enroute`.
    pub program: PathBuf,
    /// Where the brokers keep what they keep.
    pub folder: PathBuf,
    /// Between signs of life; the brokers' default if left out.
    pub keep_alive_ms: Option<u64>,
    /// Whether they merge what they announce.
    pub merge: bool,
    /// Whether each is in a network namespace of its own, which takes root and the program `ip`.
    pub namespaces: bool,
}

/// A broker, running or not.
struct Broker {
    plan: Plan,
    process: Option<Process>,
    /// Dropped after the process.
    _space: Space,
    /// Its id, once it has run.
    id: String,
    /// How often it has been started.
    lives: u64,
}

/// A link, whole or cut.
#[derive(Debug)]
struct Link {
    ends: [usize; 2],
    cut: bool,
    /// One for each end that dials, in the order of the ends.
    proxies: Vec<Proxy>,
}

/// A network of processes on this machine; they are killed when it is dropped.
pub struct Network {
    program: PathBuf,
    brokers: Vec<Broker>,
    links: Vec<Link>,
    traffic: Traffic,
}

impl Network {
    /// Prepares a network; nothing runs yet but the proxies. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`RealError::Io`].
    pub async fn new(plans: Plans) -> Result<Network, RealError> {
        let space = |number| if plans.namespaces { Space::namespace(number) } else { Ok(Space::loopback()) };
        let spaces = (0..plans.brokers.len()).map(space).collect::<Result<Vec<_>, _>>()?;
        let mut peers = vec![Vec::new(); plans.brokers.len()];
        let mut links = Vec::new();
        for (ends, wire) in plans.links {
            let diallers = match plans.dial {
                Dial::One => 1,
                Dial::Both => 2,
            };
            let mut proxies = Vec::new();
            for &dialler in &ends[..diallers] {
                let proxy = Proxy::start(spaces[dialler].outside, wire).await?;
                peers[dialler].push(proxy.address());
                proxies.push(proxy);
            }
            links.push(Link { ends, cut: false, proxies });
        }
        let broker = |((name, peers), space): ((String, _), Space)| {
            let plan = Plan {
                folder: plans.folder.join(&name),
                name,
                host: space.inside,
                peers,
                keep_alive_ms: plans.keep_alive_ms,
                merge: plans.merge,
                within: space.within(),
            };
            Broker { plan, process: None, _space: space, id: String::new(), lives: 0 }
        };
        let brokers = plans.brokers.into_iter().zip(peers).zip(spaces).map(broker).collect();
        Ok(Network { program: plans.program, brokers, links, traffic: Traffic::default() })
    }

    /// Starts a broker, with the identity of its earlier lives. Nothing happens if it runs.
    ///
    /// # Errors
    /// [`RealError::Start`].
    pub async fn start(&mut self, broker: usize) -> Result<(), RealError> {
        let it = &mut self.brokers[broker];
        if it.process.is_some() {
            return Ok(());
        }
        let process = Process::start(&self.program, &it.plan).await?;
        (it.id, it.lives) = (process.id.clone(), it.lives + 1);
        for link in &self.links {
            for (side, proxy) in link.proxies.iter().enumerate() {
                if link.ends[1 - side] == broker {
                    proxy.lead_to(process.address);
                }
            }
        }
        it.process = Some(process);
        Ok(())
    }

    /// Starts all brokers that do not run.
    ///
    /// # Errors
    /// [`RealError::Start`].
    pub async fn start_all(&mut self) -> Result<(), RealError> {
        for broker in 0..self.brokers.len() {
            self.start(broker).await?;
        }
        Ok(())
    }

    /// Kills a broker without a word (SIGKILL). Nothing happens if it does not run.
    ///
    /// # Errors
    /// [`RealError::Io`].
    pub async fn kill(&mut self, broker: usize) -> Result<(), RealError> {
        if let Some(process) = self.brokers[broker].process.take() {
            process.kill().await?;
        }
        Ok(())
    }

    /// Cuts a link: its connections are closed, and new ones refused.
    pub fn cut(&mut self, link: usize) {
        self.links[link].cut = true;
        self.links[link].proxies.iter().for_each(Proxy::cut);
    }

    /// Heals a link.
    pub fn heal(&mut self, link: usize) {
        self.links[link].cut = false;
        self.links[link].proxies.iter().for_each(Proxy::heal);
    }

    /// Resets the connections of a link, of which there may be new ones at once.
    pub fn reset(&self, link: usize) {
        self.links[link].proxies.iter().for_each(Proxy::reset);
    }

    /// How many connections have been reset, of all links.
    pub fn struck(&self) -> usize {
        self.links.iter().flat_map(|link| &link.proxies).map(Proxy::struck).sum()
    }

    /// The links, by the places of their ends.
    pub fn links(&self) -> impl Iterator<Item = [usize; 2]> {
        self.links.iter().map(|link| link.ends)
    }

    /// The name of a broker.
    pub fn name(&self, broker: usize) -> &str {
        &self.brokers[broker].plan.name
    }

    /// Whether a broker has been started and not been killed.
    pub fn runs(&self, broker: usize) -> bool {
        self.brokers[broker].process.is_some()
    }

    /// Where clients of a broker connect, in its present life; `None` if it does not run.
    pub fn address(&self, broker: usize) -> Option<Multiaddr> {
        self.brokers[broker].process.as_ref().map(|process| multiaddress(process.address))
    }

    /// How many brokers there are.
    pub fn brokers(&self) -> usize {
        self.brokers.len()
    }

    /// What has gone over the links, as far as anybody looked before they were lost.
    pub(crate) fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// What the brokers that run say of themselves, by their places. Those that do not answer are left out.
    pub async fn look(&mut self) -> BTreeMap<usize, NodeStatus> {
        let running = self.brokers.iter().enumerate().filter_map(|(place, it)| Some((place, it.process.as_ref()?)));
        let asking = running.map(|(place, process)| async move { Some((place, process.monitor.status().await.ok()?)) });
        let statuses: BTreeMap<usize, NodeStatus> = join_all(asking).await.into_iter().flatten().collect();
        let places: BTreeMap<&str, usize> =
            self.brokers.iter().enumerate().map(|(place, it)| (it.id.as_str(), place)).collect();
        for (&place, status) in &statuses {
            self.traffic.note((place, self.brokers[place].lives), status, &places);
        }
        statuses
    }

    /// One look at the whole: what is not as it would be if the network had settled, or `None`.
    pub fn unsettled(&self, statuses: &BTreeMap<usize, NodeStatus>) -> Option<String> {
        let running = self.brokers.iter().enumerate().filter(|(_, it)| it.process.is_some());
        let names: BTreeMap<usize, (&str, &str)> =
            running.map(|(place, it)| (place, (it.plan.name.as_str(), it.id.as_str()))).collect();
        View { names, links: self.whole(), statuses }.unsettled()
    }

    /// Links that are whole and whose ends run, both ways round.
    fn whole(&self) -> BTreeSet<[usize; 2]> {
        let whole = |&link: &&Link| !link.cut && link.ends.iter().all(|&end| self.runs(end));
        self.links.iter().filter(whole).flat_map(|link| [link.ends, [link.ends[1], link.ends[0]]]).collect()
    }

    /// For each broker the part of the network that it is in: those that a path joins have the same.
    pub(crate) fn parts(&self) -> Vec<usize> {
        let links = self.whole();
        let part = |broker| within_reach(&links, broker).first().copied().unwrap_or(broker);
        (0..self.brokers.len()).map(part).collect()
    }

    /// Waits until two looks in a row show a settled network, and the same one. Gives the time until the first of them, and
    /// the last look.
    ///
    /// # Errors
    /// [`RealError::Unsettled`] with what is not as it should be.
    pub async fn settle(&mut self, within: Duration) -> Result<(Duration, BTreeMap<usize, NodeStatus>), RealError> {
        let start = Instant::now();
        let mut ticks = interval(LOOK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut before: Option<(Duration, Vec<u64>)> = None;
        loop {
            ticks.tick().await;
            let statuses = self.look().await;
            let why = self.unsettled(&statuses);
            let now = counts(&statuses);
            before = match (before, &why) {
                (Some((took, known)), None) if known == now => return Ok((took, statuses)),
                (_, None) => Some((start.elapsed(), now)),
                (_, Some(_)) => None,
            };
            if start.elapsed() > within {
                let why = why.unwrap_or_else(|| "something is still going on".into());
                return Err(RealError::Unsettled { within, why });
            }
        }
    }
}
