// Package provisioner converts Provisioners and AWSNodeTemplates, which are used in manifests from before v1beta1, to
// current objects: NodePools and node classes, which they own.
//
//	Provisioners, AWSNodeTemplates --1 gather--> 2 translate (internal/legacy/v1alpha5) --3 act--> NodePools, node classes
//	                     ^                                                                    |
//	                     +------------- 4 tell: status, events <------------------------------+
//
// All of them are evaluated together whenever one of them, or an object that was created from them, changes, because
// the result for one can depend on the others. An object that cannot be created does not affect the others.
//
//   - Created objects match their source. A manual edit is reverted, including additions; therefore specs are
//     replaced as a whole, not applied field by field. Metadata of other writers (hashes, labels) is not changed.
//   - They are owned by their source, so that the API's garbage collection deletes them with the source, and the
//     nodes with the pool, as in older versions. Objects that are no longer needed are deleted. A node class is not
//     deleted while any pool references it.
//   - An object of the same name that was not created from the source is not changed. The status reports it.
//     Exception: a node class whose own source now has other results is taken over by the source that now has a
//     result of that name.
//   - The annotation karpenter-go.github.io/made-from names the source of an object. An object that has lost its
//     owner (for example after a restore) and still has the annotation is owned again if its source exists.
//   - If several providers' controllers run, one of them manages a Provisioner (claim.go).
//   - A finalizer of that name keeps a source that is being deleted until this package has released the created
//     objects: to the garbage collector, or, for --cascade=orphan, permanently, without owner and annotation
//     (release.go).
//
// The package must not contain the semantics of older versions (internal/legacy/v1alpha5 does), nor how pools are used.
package provisioner
