// Package pause is the answer to "this failed again": what fails or repeats waits, and longer each time.
//
//	nothing --Fail--> remembered --Fail, more than tolerated--> paused: 1, 2, 4, 8, 16, 30 minutes
//	   ^                  |                                       |  ^
//	   |              an hour passes                              |  Fail of an attempt that began after the pause
//	   |                  |                                       v  |
//	   +---- Without -----+-------- an hour passes ------------ over: the next attempt is made
//
// A Pause has a Key: the scope (the UID of a controller of pods, the name of a NodePool, of a NodeClaim) and the reason.
// An attempt that began before the last failure or the end of its pause is part of the same round, and counts once.
//
// Pauses that must survive a restart are in the annotation karpenter-go.github.io/pauses of a NodePool, as a List. There,
// controller/nodepool reads them for the event Paused and the metric karpenter_nodepools_paused. Removing the annotation
// ends them.
//
//	reason                 scope             a failure is                                      seen by
//	Launch                 owner of pods,    a node on which none of its pods runs             engine/futile
//	                         buffer,
//	                         pool + taint,
//	                         label or room
//	Drifted, Expired,      NodePool          a replacement that does not become ready          engine/guard
//	  Underutilized
//	DriftedUndone          NodePool          a replacement of a drifted node that drifts soon          engine/guard
//	UnderutilizedUndone    NodePool          a node that is launched for pods that consolidation     engine/guard
//	                                         moved, or a replacement that was launched in vain
//	StaticLaunch           NodePool          a claim that is deleted before its node is ready    engine/disruption
//	Removal                NodePool, fleet   a removal that was not requested, of a machine      controller/removal
//	                                         that the cloud or its node shows
//
// A NodePool whose claims the API server refuses has a pause in memory (internal/cluster/state).
//
// Some failures of removals are normal: a fifth of the machines of a NodePool may fail within ten minutes (FailWithin).
//
// The package must not know what is paused: no pods, nodes, pools, plans or clouds. Whether an attempt has failed, and
// what has to wait, is decided where the attempt is made. It has no clock: the time is an argument.
package pause
