// Package v1beta1 converts NodePools, NodeClaims and EC2NodeClasses between v1beta1, which manifests of 2023 and 2024
// use, and v1. It is pure. The conversion webhook and `kubectl karpenter migrate` call it.
//
//	v1beta1 --ToV1--> v1     disruption.expireAfter    -> template.spec.expireAfter
//	        <-FromV1-        WhenUnderutilized          -> WhenEmptyOrUnderutilized, consolidateAfter 0s
//	                         nodeClassRef.apiVersion    -> group, and an annotation where the version says more
//	                         template.spec.kubelet      -> an annotation
//	                         amiFamily without terms    -> an alias
//
// Objects are maps, as decoded from JSON: the notation of durations and quantities does not change, fields that no
// version defines are kept, and no stored content can make a conversion fail, because one failure would make every
// list of the kind unreadable. Content of an unexpected form is copied. There is one exception: an object of v1beta1
// with so much that only v1beta1 has that an annotation cannot hold it (BoundError).
//
// The conversion is lossless by construction. Each direction is a plain mapping (poolToV1, poolFromV1 ...). After it,
// the reverse mapping is tried. Differences are stored in an annotation as a list of edits (complement.go), with a
// digest of the object to which they belong. The reverse conversion applies the edits if the object is unchanged
// since. Otherwise it drops them, because the later change takes precedence. So, for all objects:
//
//	FromV1(ToV1(b)) = b        ToV1(FromV1(v)) = v
//
// The fuzz tests verify this. Most objects need no such annotation, because api/*/v1beta1 have the new fields of v1
// too. Any client can write annotations, so what their texts may cost is bounded (bounds.go): one beyond a limit is
// ignored like one that is not JSON, and remains part of the object in v1.
//
// The input is expected in the form that the API server sends, with the defaults of its version. A NodeClaim of
// v1beta1 does not contain its expiration, which belonged to its pool. The caller provides it (Converter.Expiry).
//
// The package must not depend on its callers, clients, or the time.
package v1beta1
