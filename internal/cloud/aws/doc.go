// Package aws is the provider for Amazon EC2. It combines the packages below it and is the only one that imports all of
// them.
//
//	EC2NodeClass --> class.Reconciler (discovery, dry run) --> status: subnets, groups, images, profile
//	                                                              |
//	catalog, prices, refusals, memory seen on nodes ------> shelf: typeSet and catalog per class
//	                                                              |
//	Launch(claim) = class + catalog + cluster facts -----> launch.Launcher --> EC2
//	Drifted(claim) = hash, image, groups, subnet against the class
//	SQS, instance status --> interruption.Watcher --> the claim's deadline and deletion
//
// State that is learned while the process runs (prices, refusals, memory) is shared by all classes. After a change,
// Options.Changed is called, which triggers a new read of the catalogs. So a plan does not wait for the next period to
// use a change of availability.
//
// State that must survive the process is in the cluster or in EC2: launch requests are annotations of claims, memory
// seen on nodes is in a ConfigMap, and the resolved resources of a class are in its status. Everything else is read
// again.
//
// On the leader, the provider runs its own loops: the controller of node classes, the controller that observes the
// memory of nodes, the interruption watcher, and the upkeep rounds for types, prices, images, templates, profiles and
// tags (rounds.go).
//
// The package must not depend on the engine, the store, metrics or the texts of events. The functions of Observer are
// injected.
package aws
