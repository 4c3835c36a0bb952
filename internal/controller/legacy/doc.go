// Package legacy makes Provisioners and AWSNodeTemplates, which manifests of before v1beta1 have, what they are today:
// NodePools and node classes, which they own.
//
//	Provisioners, AWSNodeTemplates --1 gather--> 2 translate (internal/legacy) --3 act--> NodePools, node classes
//	                     ^                                                                    |
//	                     +------------- 4 tell: status, events <------------------------------+
//
// All of them are looked at together whenever one of them, or something that was made from them, changes: what one becomes
// can depend on the others. What cannot be made stops nothing else.
//
//   - What was made is kept as its object says. An edit by hand is undone, additions too; therefore specs are replaced as a
//     whole, not applied field by field. Metadata that others write (hashes, labels) is left alone.
//   - It is owned by its object, so that the API's garbage collection deletes it with the object, and the nodes with the
//     pool: as it was. What is no longer wanted is deleted, and a node class never while a pool names it, whoever wrote the pool.
//   - An object of the same name that was not made from this one is left alone; the status says so. But a node class whose own
//     object has become others becomes that of the object that has become one of its name.
//   - The annotation karpenter-go.github.io/made-from says what a thing was made from. What has lost its owner (as in a restore)
//     and still has it is owned again if its object is there.
//   - One provider's controller keeps a Provisioner, if there are several (claim.go).
//   - A finalizer of that name keeps an object that is being deleted until this package has let go of what it made: to the
//     collector, or, for --cascade=orphan, for good, without owner and annotation (release.go).
//
// The package must not know what older versions meant (internal/legacy does), nor how pools are used.
package legacy
