//! Nodes and clients over real sockets on the loopback. Whatever is awaited is awaited under a deadline; nothing sleeps.

mod acceptance;
mod clients;
mod hostile;
mod identity;
mod interest;
mod links;
mod mesh;
mod overload;
mod raw;
mod slow;
mod support;
mod throttled;
