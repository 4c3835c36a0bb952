// Package webhook serves the older versions of this project's kinds next to v1. It contains the webhook to which
// the API server sends their objects, and everything that keeps it working. The conversion itself is in
// internal/legacy/v1beta1. See
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/.
//
//	                    every replica                                       the leader
//	Secret  <--keeper--> certificates                                       Storage
//	                        |  authority                                      | rewrites objects that are stored in
//	                        v                                                 v older versions, and managedFields
//	API server --TLS--> Server, /convert       CustomResourceDefinition <-----+ status.storedVersions
//	     ^                  | spec.conversion         ^
//	     +------------------+-------------------------+
//
// The keeper creates an authority and a certificate that it signs, and stores both in a Secret in the controller's
// own namespace. It renews each when a third of its time is left. All replicas serve the certificate in the Secret,
// so the first writer decides. An authority that is replaced stays in the bundle until it ends. Nothing depends on
// the name of the namespace or of the release.
//
// The server writes the service and the bundle into spec.conversion of the definitions, and no other fields. Other
// writers own those objects: whenever they are applied again, the server restores its fields. It does so on every
// replica and before any cache is filled, because caches cannot be filled while objects are stored in an older
// version and no webhook converts them.
//
// Objects are stored in v1 and never pass here in that version: clients of v1 work without a webhook. Two situations
// could make them depend on it, and the leader removes both: objects that were stored before v1 was the storage
// version, and entries of managedFields in an older version, which the API server converts at each write of the
// object.
//
// If the webhook is disabled (port 0), the definitions name a service that does not exist and whose name says so: the
// API server then rejects older versions with that name in its message, and loses nothing.
//
// The package must not depend on providers, plans or the store.
package webhook
