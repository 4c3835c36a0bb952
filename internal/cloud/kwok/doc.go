// Package kwok is the provider whose machines are simulated. It keeps a cloud of its own inside the cluster: one
// ConfigMap per machine is the cloud's record of what was bought, and a Node object is what a booted machine would have
// registered. kwok's controller (kwok.x-k8s.io/node=fake) plays the kubelet from there.
//
//	Launch --create--> ConfigMap kwok-machine-x <--live reads-- Machine, Machines
//	                        |  due: launch + nodeRegistrationDelay
//	       Start (queue) ---+--create--> Node kwok-x --> kwok's controller makes it Ready
//	                        |
//	Terminate --delete Node, delete ConfigMap--> ErrNotFound
//
// The record makes a launch durable at once: the name is computed from the claim, so a launch that is asked again (after
// a lost answer, a crash, by a second process) finds AlreadyExists and returns the same machine, and a restart resumes
// the registrations that are due. Nothing that matters is in memory only; what is (which offerings were found sold out,
// how often a launch was made to fail) may be lost without harm.
//
// What a cloud does badly can be had on purpose, in the real binary: by Options for all machines, and by annotations of
// the KWOKNodeClass (see the Annotation constants) at run time: sold-out offerings, slow launches, failing launches,
// machines that never register, slow terminations, machines whose image is out of date (drift).
//
// The package must not know the engine, the store or any controller. It never removes a finalizer: a Node that our
// controllers hold back is left to them.
package kwok
