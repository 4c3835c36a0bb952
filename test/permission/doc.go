// Package permission determines which permissions an account has on an API server, and which it uses. Tests compare
// roles with the requests of the program that has them.
//
//	Arguments ── flags with which the API server keeps an audit log of one service account
//	Kubeconfig ─ a connection as that service account
//	Read ─────── the log: requests that were denied, and permissions that were used
//	Grants ───── the permissions that roles grant, one by one
//	Unused ───── those that no request needed
//
// The API server itself records the requests (audit.k8s.io/v1, events of stage ResponseComplete with the annotation
// authorization.k8s.io/decision). Nothing is between the program and the server, and retries, other processes and
// clients with their own connections are included.
//
// The package does not depend on charts or the controller.
package permission
