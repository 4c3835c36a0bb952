// Package transport wraps the requests to the Kubernetes API and to clouds: it measures the clock of the API server, slows down
// while the server refuses requests (Pace), and prevents a controller from writing after its Lease has expired. It must not know
// what is read or written.
//
// Skew is the difference between the clock of this machine and that of the API server. Deletion timestamps of pods and
// nodes are times of the API server, and kubelets with synchronized clocks renew the Leases of nodes. A controller with a
// clock that is minutes ahead would treat pods that are terminating normally as lost. Each response of the API server has
// the header Date, in whole seconds (https://www.rfc-editor.org/rfc/rfc9110#field.date). A difference that is at most the
// duration of the request plus one second counts as no difference.
//
// Guard refuses each write of a process whose Lease has expired. A process can be stopped for longer than the duration of
// its Lease, by SIGSTOP, a paused virtual machine or a starved node, and continue in the middle of a write loop while
// another process leads. The leader election detects this only at its next attempt to renew.
//
//	election --Lock--> Guard <--Check-- Transport (Kubernetes), Provider (launches, terminations), middleware of an SDK
//
// The check runs directly before the request is sent. A process that is stopped between the check and the request can
// still send that one request. The API server then refuses outdated writes (resource versions, names derived from plans).
//
// A process that has never led is not restricted: the writes of a standby do not depend on leadership.
package transport
