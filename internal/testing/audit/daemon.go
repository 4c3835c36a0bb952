package audit

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// daemonsCome binds the pods of daemons that are certain to run on planned nodes and on nodes that are not
// initialized. It does so before the first pod of the plan is bound. Only rules by hostname count these pods: their
// number in larger domains depends on when they are created.
func (j *judge) daemonsCome(r *bindState, nodes, all []*spot) {
	for _, d := range j.snap.Daemons {
		pod := daemonPod(d)
		for i, s := range all {
			if i < len(nodes) && !j.comesLater(d, j.snap.Nodes[i]) {
				continue
			}
			if _, no := untolerated(s.taints, d.DaemonSpec.Tolerations); !no && s.accepted(d.DaemonSpec.Alternatives) == surely {
				r.bindDaemon(pod, s)
			}
		}
	}
}

func daemonPod(d *model.Daemon) *model.Pod {
	return &model.Pod{Shape: &model.Shape{Signature: "daemon " + d.UID, Namespace: d.Namespace, Terms: d.DaemonSpec.Terms},
		UID: d.UID, Name: d.Name, Labels: d.DaemonSpec.Labels, Daemon: true}
}

// comesLater reports whether a pod of the daemon may still be created on the node.
func (j *judge) comesLater(d *model.Daemon, n *model.Node) bool {
	return n.Stage != model.Initialized && !slices.ContainsFunc(n.Pods, func(p *model.Pod) bool { return p.Controller.UID == d.UID })
}

// bindDaemon counts the daemon's pod in every tally by hostname.
func (r *bindState) bindDaemon(pod *model.Pod, s *spot) {
	byHost := func(t *tally) bool { return len(t.keys) == 1 && t.keys[0] == model.LabelHostname }
	for _, t := range slices.Concat(r.live, r.general) {
		if byHost(t) && t.selected(pod) {
			t.bind(s)
		}
	}
	for _, t := range r.carried(pod) {
		if byHost(t) {
			t.bind(s)
		}
	}
}

// besideDaemons reports whether a required anti-affinity rule by hostname exists between the pod and a daemon. The
// daemons of a pool may then prevent the pod from running in that pool.
func (j *judge) besideDaemons(pod *model.Pod) bool {
	for _, d := range j.snap.Daemons {
		about := func(t model.Term, other *model.Pod) bool {
			return t.Anti && t.Weight == 0 && canonical(t.Key) == model.LabelHostname && concerns(&t, other)
		}
		if slices.ContainsFunc(pod.Terms, func(t model.Term) bool { return about(t, daemonPod(d)) }) ||
			slices.ContainsFunc(d.DaemonSpec.Terms, func(t model.Term) bool { return about(t, pod) }) {
			return true
		}
	}
	return false
}
