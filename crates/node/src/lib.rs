//! A broker on libp2p and tokio, to run or to embed.
