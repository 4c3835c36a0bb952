// Package aws is the provider for Amazon EC2: it joins the packages below it, and is the only one that knows them all.
//
//	EC2NodeClass --> class.Reconciler (discovery, dry run) --> status: subnets, groups, images, profile
//	                                                              |
//	catalog, prices, what was refused, memory seen on nodes --> shelf: assortment and catalogue per class
//	                                                              |
//	Launch(claim) = class + catalogue + facts of the cluster --> launch.Launcher --> EC2
//	Drifted(claim) = hash, image, groups, subnet against the class
//	SQS, instance status --> interruption.Watcher --> the claim's deadline and deletion
//
// What the parts learn while the process runs (prices, refusals, memory) is shared by all classes. Whoever changes it
// says so (changed), and Options.Changed has catalogues read again, so that a plan never waits for the next period to
// learn that something is sold out, or to be had again.
//
// What must outlive the process is in the cluster or in EC2: purchases are annotations of claims, memory seen on nodes is
// a ConfigMap, the class's findings are its status. Everything else is asked for again.
//
// On the leader the provider runs loops of its own: the controller of classes, the one that sees nodes' memory, the
// watch for interruptions, and the rounds of upkeep: types, prices, images, templates, profiles, tags (rounds.go).
//
// The package must not know the engine, the store, metrics or the words of events: Observer's functions are given to it.
package aws
