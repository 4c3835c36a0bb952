// Package permission finds out what somebody was permitted to do on an API server, and what he did: tests hold roles to
// the calls of the program that has them.
//
//	Arguments ── flags with which the API server keeps an audit log of one service account
//	Kubeconfig ─ a connection as that service account
//	Read ─────── the log: calls that were denied, and permissions that were used
//	Grants ───── the permissions that roles give, one by one
//	Unused ───── those that no call asked for
//
// The API server itself says who asked for what (audit.k8s.io/v1, events of stage ResponseComplete with the annotation
// authorization.k8s.io/decision), so that nothing stands between the program and the server, and retries, other
// processes and clients with their own connections are seen as well.
//
// It knows nothing of charts or of the controller.
package permission
