// Package kwok is the provider for simulated machines. It simulates a cloud inside the cluster. One ConfigMap per
// machine is the cloud's record of the machine, and a Node object stands for the registration of a booted machine.
// kwok's controller (kwok.x-k8s.io/node=fake) simulates the kubelet from there.
//
//	Launch --create--> ConfigMap kwok-machine-x <--live reads-- Machine, Machines
//	                        |  due: launch + nodeRegistrationDelay
//	       Start (queue) ---+--create--> Node kwok-x --> kwok's controller sets it to Ready
//	                        |
//	Terminate --delete Node, delete ConfigMap--> ErrNotFound
//
// The record makes a launch durable immediately. Its name is computed from the claim, so a repeated launch (after a
// lost response, a crash, or by a second process) gets AlreadyExists and returns the same machine. A restarted process
// resumes the registrations that are due.
//
// Machines never fail and never run out: faults of a cloud are simulated by internal/testing/awssim, and by the fakes of
// the controllers' tests.
//
// The package must not depend on the engine, the store or any controller. It never removes a finalizer: a Node that a
// controller holds with a finalizer remains until that controller removes the finalizer.
package kwok
