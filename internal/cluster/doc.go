// Package cluster keeps a State (package state) up to date: with what the API shows, with this controller's own writes
// that the watch has not shown yet, and with what the provider sells.
//
//	informers --Saw, Gone--------------+
//	executor --Wrote, Deleted----------+--> state.State --> Snapshot(now)
//	provider --Catalog (per pool)------+         |
//	NodeOverlays --overlay.Resolve ----+         +--> Drain: subscriptions, departures, metrics, log
//
// The current state of an object is the newest of the watched state and this controller's own writes. An own write is
// kept until the watch shows that UID at that version or later, or its deletion. When Options.WriteVisible has
// passed, or a watch broke (after which it may relist and skip events), a live read decides: a claim that was created
// and deleted inside one gap of the watch must not be kept forever. Resource versions are compared by apimachinery's
// resourceversion package; where they cannot be compared the watch takes precedence.
//
// There is no "unsynced" state after the first list of the informers.
//
// Each part has a lock of its own: the own writes (Store), the catalogs, the overlays and the news. While it is held a part
// may call the state, which calls nothing. A resolution of overlays is the only part that calls another one with its lock
// held: that of the catalogs, and the news. Otherwise what happened is passed on by news.publish without the locks of the
// other parts.
//
// The package must not know placement, disruption or controllers.
package cluster
