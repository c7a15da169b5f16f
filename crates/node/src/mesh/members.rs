//! Members of the network that a broker remembers across restarts: a text file in the data directory, an address a line,
//! each with the peer id at its end.

use crate::identity::replace;
use crate::peers::peer_of;
use libp2p::multiaddr::Protocol;
use libp2p::{Multiaddr, PeerId};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The file's name.
const FILE: &str = "members";
/// Members that are remembered.
const MAX_MEMBERS: usize = 64;
/// Addresses of one member that are of use.
const MAX_ADDRESSES: usize = 8;
/// More than the file takes.
const MAX_FILE: u64 = 256 << 10;

/// Peers and their addresses, without the peer ids at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Members(BTreeMap<PeerId, Vec<Multiaddr>>);

impl Members {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&PeerId, &[Multiaddr])> {
        self.0.iter().map(|(peer, addresses)| (peer, addresses.as_slice()))
    }

    pub(crate) fn retain(&mut self, wanted: impl Fn(&PeerId) -> bool) {
        self.0.retain(|peer, _| wanted(peer));
    }

    /// Takes in the members that are within reach, those first that are to be preferred, with the addresses they tell. One that is
    /// out of reach stays unless its place is needed. Whether that changes anything.
    pub(crate) fn note(&mut self, reachable: Vec<(PeerId, Vec<Multiaddr>)>) -> bool {
        let mut changed = false;
        let within: BTreeSet<PeerId> = reachable.iter().map(|(peer, _)| *peer).collect();
        let away: Vec<PeerId> = self.0.keys().copied().filter(|peer| !within.contains(peer)).collect();
        let mut away = away.into_iter();
        for (peer, addresses) in reachable {
            if !self.0.contains_key(&peer) && self.0.len() >= MAX_MEMBERS {
                let Some(old) = away.next() else { continue };
                self.0.remove(&old);
            }
            if self.0.get(&peer) != Some(&addresses) {
                self.0.insert(peer, addresses);
                changed = true;
            }
        }
        changed
    }

    /// What the file of a data directory says; nothing, with a warning, if it cannot be read. Lines that are no addresses are
    /// left out.
    pub(crate) fn load(data_dir: &Path) -> Members {
        let path = data_dir.join(FILE);
        let mut text = Vec::new();
        match File::open(&path).and_then(|file| file.take(MAX_FILE).read_to_end(&mut text)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(path = %path.display(), %error, "the remembered members cannot be read"),
        }
        let (members, bad) = Members::parse(&String::from_utf8_lossy(&text));
        if bad > 0 {
            tracing::warn!(path = %path.display(), lines = bad, "lines that are no address of a broker are left out");
        }
        members
    }

    /// The members, and how many lines are of no use.
    fn parse(text: &str) -> (Members, usize) {
        let (mut members, mut bad) = (Members::default(), 0);
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let address = line.trim().parse::<Multiaddr>().ok();
            let peer = address.as_ref().and_then(peer_of);
            let (Some(peer), Some(address)) = (peer, address.and_then(|address| usable(&address, peer?))) else {
                bad += 1;
                continue;
            };
            let full = members.0.len() >= MAX_MEMBERS && !members.0.contains_key(&peer);
            let addresses = if full { continue } else { members.0.entry(peer).or_default() };
            if addresses.len() < MAX_ADDRESSES && !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        (members, bad)
    }

    /// The content of the file.
    pub(crate) fn to_text(&self) -> String {
        let with_peer = |(peer, addresses): (&PeerId, &Vec<Multiaddr>)| {
            addresses.iter().map(|address| format!("{address}/p2p/{peer}\n")).collect::<String>()
        };
        self.0.iter().map(with_peer).collect()
    }
}

/// Replaces the file as a whole.
pub(crate) fn store(data_dir: &Path, text: &str) {
    if let Err(error) = replace(data_dir, FILE, text.as_bytes()) {
        tracing::warn!(%error, "the members of the network are not remembered across a restart");
    }
}

/// The addresses among those that a member tells at which it can be dialled.
pub(crate) fn usable_addresses(told: &[String], peer: PeerId) -> Vec<Multiaddr> {
    let parsed = told.iter().filter_map(|address| usable(&address.parse().ok()?, peer));
    parsed.take(MAX_ADDRESSES).collect()
}

/// An address without the peer id; none if it is another peer's, or none that anybody could dial.
fn usable(address: &Multiaddr, peer: PeerId) -> Option<Multiaddr> {
    let mut bare = address.clone();
    if let Some(named) = peer_of(address) {
        bare.pop();
        if named != peer {
            return None;
        }
    }
    let host = match bare.iter().next()? {
        Protocol::Ip4(ip) => !ip.is_unspecified(),
        Protocol::Ip6(ip) => !ip.is_unspecified(),
        Protocol::Dns(_) | Protocol::Dns4(_) | Protocol::Dns6(_) => true,
        _ => false,
    };
    let port = match bare.iter().nth(1)? {
        Protocol::Tcp(port) | Protocol::Udp(port) => port != 0,
        _ => false,
    };
    (host && port).then_some(bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses<'a>(members: &'a Members, peer: &PeerId) -> Option<&'a [Multiaddr]> {
        members.0.get(peer).map(Vec::as_slice)
    }

    fn address(port: u16) -> Multiaddr {
        format!("/ip4/192.0.2.1/tcp/{port}").parse().unwrap()
    }

    fn members(from: u16, count: u16) -> Vec<(PeerId, Vec<Multiaddr>)> {
        (from..from + count).map(|port| (PeerId::random(), vec![address(port), address(port + 1)])).collect()
    }

    #[test]
    fn what_is_written_reads_back() {
        let mut remembered = Members::default();
        assert!(remembered.note(members(1, 10)));
        assert_eq!(Members::parse(&remembered.to_text()), (remembered, 0));
        assert_eq!(Members::parse(""), (Members::default(), 0));
    }

    #[test]
    fn bad_lines_are_counted_and_left_out() {
        let peer = PeerId::random();
        let good = format!("/ip4/192.0.2.1/tcp/1/p2p/{peer}\n");
        for bad in [
            "nonsense",
            "/ip4/192.0.2.1/tcp/1",
            "/ip4/0.0.0.0/tcp/1/p2p/PEER",
            "/ip4/1.2.3.4/tcp/0/p2p/PEER",
            "/p2p/PEER",
            "/memory/7/p2p/PEER",
            "\u{fffd}\0",
        ] {
            let text = format!("{good}{}\n\n{good}", bad.replace("PEER", &peer.to_string()));
            let (read, count) = Members::parse(&text);
            assert_eq!((addresses(&read, &peer), count), (Some(&[address(1)][..]), 1), "{bad}");
        }
    }

    #[test]
    fn there_is_a_bound_and_whoever_is_out_of_reach_makes_room() {
        let mut remembered = Members::default();
        let first = members(1, MAX_MEMBERS as u16);
        remembered.note(first.clone());
        let second = members(1_000, 10);
        remembered.note([first.clone(), second.clone()].concat());
        assert!(first.iter().all(|(peer, told)| addresses(&remembered, peer) == Some(told)));
        remembered.note([first[5..].to_vec(), second.clone()].concat());
        assert_eq!(remembered.iter().count(), MAX_MEMBERS);
        assert!(first[5..].iter().all(|(peer, _)| addresses(&remembered, peer).is_some()), "those within reach stay");
        assert!(
            second[..5].iter().all(|(peer, _)| addresses(&remembered, peer).is_some()),
            "the first of the new ones"
        );
        let many: String = members(1, 500).iter().map(|(peer, _)| format!("{}/p2p/{peer}\n", address(9))).collect();
        assert_eq!(Members::parse(&many).0.iter().count(), MAX_MEMBERS);
    }

    #[test]
    fn a_member_that_moves_is_remembered_where_it_is() {
        let mut remembered = Members::default();
        let mut one = members(1, 1);
        remembered.note(one.clone());
        one[0].1 = vec![address(77)];
        remembered.note(one.clone());
        assert_eq!(addresses(&remembered, &one[0].0), Some(&[address(77)][..]));
        remembered.note(Vec::new());
        assert_eq!(addresses(&remembered, &one[0].0), Some(&[address(77)][..]), "whoever is away may come back");
    }

    #[test]
    fn told_addresses_are_checked() {
        let peer = PeerId::random();
        let told = [
            format!("/ip4/192.0.2.1/tcp/1/p2p/{peer}"),
            format!("/ip4/192.0.2.1/tcp/2/p2p/{}", PeerId::random()),
            "/dns4/broker.example.org/tcp/3".into(),
            "nonsense".into(),
            "/ip6/::/tcp/4".into(),
            "/ip4/192.0.2.1/udp/5/quic-v1".into(),
        ];
        let expected = ["/ip4/192.0.2.1/tcp/1", "/dns4/broker.example.org/tcp/3", "/ip4/192.0.2.1/udp/5/quic-v1"];
        assert_eq!(usable_addresses(&told, peer), expected.map(|address| address.parse().unwrap()));
    }
}
