// Package conversion serves the older versions of our kinds beside v1: it is the webhook that the API server sends their
// objects to, and all that keeps it working. What a conversion is, internal/legacy/beta says.
//
//	                    every replica                                        the leader
//	Secret  <--keeper--> certificates                                        Storage
//	                        |  authority                                       | rewrites objects that are stored in an older
//	                        v                                                  v version, and who manages their fields
//	API server --TLS--> Server, /convert       CustomResourceDefinition  <-----+ status.storedVersions
//	     ^                  | spec.conversion         ^
//	     +------------------+-------------------------+
//
// The keeper makes an authority and a certificate under it and keeps both in a Secret of the program's own namespace. It
// renews each when a third of its time is left; all replicas serve what the Secret has, so whoever is first decides, and
// an authority that is replaced stays in the bundle until it ends. Nothing depends on the namespace or the release's name.
//
// The server writes the service and the bundle into spec.conversion of the definitions, and nothing else of them. Others
// own those files: whenever somebody applies them again, the server looks and puts its part back. It does so on every
// replica and before any cache is filled, because caches cannot be filled while objects are stored in an older version
// and nobody converts them.
//
// Objects of v1, as all are stored, never pass here: without a webhook their clients notice nothing. Two things could tie
// them to it, and the leader removes both: objects that were stored before v1 was, and entries of managedFields in an older
// version, which the API server converts at each write of the object.
//
// Switched off (port 0), the definitions name a service whose name says so, and that does not exist: the API server then
// refuses older versions with that name in its message, and loses nothing.
//
// It must not know providers, plans or the store.
package conversion
