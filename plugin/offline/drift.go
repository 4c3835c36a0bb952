package offline

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
)

// applyDrift sets and clears the condition Drifted of claims as the controller would with the pools and classes of
// files. Pools that are the same object before are skipped, so that a what-if changes one pool only. A claim without
// a comparable hash, or that is assumed for a node, counts as launched from what was there before; before may be nil.
// What only a cloud knows, such as new images, is not examined.
func (o *Manifests) applyDrift(before *Manifests) {
	rules := convert.NewVocabulary(o.sale.Declared, o.classes...).Rules
	for i, c := range o.claims {
		pool, live := o.pool(c.object.Labels[karpv1.LabelNodePool])
		var old *karpv1.NodePool
		if before != nil {
			old, _ = before.pool(c.object.Labels[karpv1.LabelNodePool])
		}
		if pool == nil || pool == old || c.object.Status.ProviderID == "" || c.object.DeletionTimestamp != nil {
			continue
		}
		if class, known := o.classOf(pool); live && (!known || class.live) {
			continue // the controller has compared them
		}
		made, assumed := *c.object, assumed(c.object)
		if assumed {
			made.Spec.NodeClassRef = cmp.Or(old, pool).Spec.Template.Spec.NodeClassRef
		}
		reason := o.classDrift(&made, pool, before)
		static, err := cloud.StaticDrift(&made, pool)
		requirements, lacks := requirementsDrift(&made, old, pool, rules)
		switch {
		case static, err != nil && old != nil && old.Hash() != pool.Hash():
			reason = karpv1.ReasonNodePoolDrifted
		case requirements:
			reason = karpv1.ReasonRequirementsDrifted
		case reason == "" && lacks != "":
			o.undrifted = append(o.undrifted, unknownDrift{made.Status.NodeName, pool.Name, lacks})
		}
		o.claims[i].object = withDrift(c.object, reason, o.now)
	}
}

// unknownDrift is a node without a claim that does not match a requirement of its pool, neither the old nor the new
// one: files may omit labels of nodes, so that it is not known whether it drifts.
type unknownDrift struct{ node, pool, label string }

// requirementsDrift reports whether a claim does not match the requirements of its pool. An assumed claim has the
// labels of its node, which may lack some: it counts as launched from the old pool, nil if there was none, and a
// label that did not match that one proves nothing. If the requirement of such a label is another one now, it is
// returned.
func requirementsDrift(made *karpv1.NodeClaim, old, pool *karpv1.NodePool, rules karpv1.LabelRules) (drifts bool, lacks string) {
	if !assumed(made) {
		return cloud.RequirementsDrift(made, pool, rules), ""
	}
	was := requirementsByKey(old)
	for label, is := range requirementsByKey(pool) {
		before, had := was[label]
		switch {
		case !cloud.RequirementsDrift(made, is, rules):
		case old == nil:
		case !had || !cloud.RequirementsDrift(made, before, rules):
			return true, ""
		case !reflect.DeepEqual(before, is) && (lacks == "" || label < lacks):
			lacks = label
		}
	}
	return false, lacks
}

// requirementsByKey returns for each label pools that have only the requirements of it.
func requirementsByKey(pool *karpv1.NodePool) map[string]*karpv1.NodePool {
	by := map[string]*karpv1.NodePool{}
	if pool == nil {
		return by
	}
	for _, r := range pool.Spec.Template.Spec.Requirements {
		if by[r.Key] == nil {
			by[r.Key] = &karpv1.NodePool{}
		}
		spec := &by[r.Key].Spec.Template.Spec
		spec.Requirements = append(spec.Requirements, r)
	}
	return by
}

// withDrift returns the claim with the reason of its drift. Without one, reasons that only a cloud finds are kept. A
// claim that had not drifted drifts from now on: the clock of this machine would order the nodes as they are in the
// files.
func withDrift(claim *karpv1.NodeClaim, reason string, now time.Time) *karpv1.NodeClaim {
	known := claim.Condition(karpv1.ConditionDrifted)
	found := []string{karpv1.ReasonNodePoolDrifted, karpv1.ReasonRequirementsDrifted, awsv1.ReasonNodeClassDrift}
	if reason == "" && !(known.IsTrue() && slices.Contains(found, known.Reason)) {
		return claim
	}
	claim = claim.DeepCopy()
	if reason == "" {
		_ = claim.StatusConditions().Clear(karpv1.ConditionDrifted)
	} else {
		claim.StatusConditions().SetTrueWithReason(karpv1.ConditionDrifted, reason, reason)
		for i := range claim.Status.Conditions {
			if c := &claim.Status.Conditions[i]; c.Type == karpv1.ConditionDrifted && !known.IsTrue() {
				c.LastTransitionTime = metav1.NewTime(now)
			}
		}
	}
	return claim
}

// classOf returns the EC2NodeClass of a pool.
func (o *objects) classOf(pool *karpv1.NodePool) (classOfAWS, bool) {
	ref := pool.Spec.Template.Spec.NodeClassRef
	class, known := o.classesOfAWS[ref.Name]
	return class, known && ref.Group == awsv1.Group && class.object != nil
}

// classDrift returns the reason if the node class of the pool differs from that of the claim, "" if not or unknown.
func (o *objects) classDrift(claim *karpv1.NodeClaim, pool *karpv1.NodePool, before *Manifests) string {
	if ref := pool.Spec.Template.Spec.NodeClassRef; ref.Group != awsv1.Group && claim.Spec.NodeClassRef != ref {
		return karpv1.ReasonNodePoolDrifted
	}
	class, known := o.classOf(pool)
	if !known {
		return ""
	}
	hash := claim.Annotations[awsv1.AnnotationNodeClassHash]
	if hash == "" || claim.Annotations[awsv1.AnnotationNodeClassHashVersion] != awsv1.HashVersion {
		if before == nil {
			return ""
		}
		old, known := before.classesOfAWS[claim.Spec.NodeClassRef.Name]
		if !known || old.object == nil {
			return ""
		}
		hash = old.object.Hash()
	}
	if hash != class.object.Hash() {
		return awsv1.ReasonNodeClassDrift
	}
	return ""
}

// pool returns the pool of the name, and whether it is that of the cluster; nil if there is none.
func (o *objects) pool(name string) (pool *karpv1.NodePool, live bool) {
	for _, p := range o.pools {
		if p.object.Name == name {
			return p.object, p.live
		}
	}
	return nil, false
}
