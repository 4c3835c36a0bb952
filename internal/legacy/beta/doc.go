// Package beta converts NodePools, NodeClaims and EC2NodeClasses between v1beta1, in which manifests of 2023 and 2024 are
// written, and v1. It is pure; the conversion webhook and `karpenter migrate` call it.
//
//	v1beta1 --ToV1--> v1     disruption.expireAfter    -> template.spec.expireAfter
//	        <-FromV1-        WhenUnderutilized          -> WhenEmptyOrUnderutilized, consolidateAfter 0s
//	                         nodeClassRef.apiVersion    -> group, and an annotation where the version says more
//	                         template.spec.kubelet      -> an annotation
//	                         amiFamily without terms    -> an alias
//
// Objects are maps, as they come off the wire: nobody's spelling of a duration or a quantity changes, fields that no
// version of ours knows are carried along, and nothing that somebody stored can make a conversion fail, because one
// failure would make every list of the kind unreadable. What has a strange form is copied.
//
// Nothing is lost, by construction. Each direction is a plain mapping (poolToV1, poolFromV1 ...). After it, the way back
// is tried; what would come back differently is kept in an annotation as a list of edits (complement.go), with a digest
// of the object that they belong to. On the way back the edits are made if nobody has changed the object meanwhile, and
// are dropped if somebody has: then what he wrote counts. So, for all objects:
//
//	FromV1(ToV1(b)) = b        ToV1(FromV1(v)) = v
//
// which the fuzz tests try. Most objects need no such annotation, because api/*/v1beta1 have the new fields of v1 too.
//
// Objects are expected as the API server gives them, with the defaults of their version. A NodeClaim of v1beta1 says
// nothing of its expiry, which was its pool's affair; who converts says where to look (Converter.Expiry).
//
// It must not know who calls it, clients, or the time.
package beta
