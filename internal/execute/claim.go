package execute

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// NotNowError means that an action is not possible in the current state of the cluster. The next plan takes that
// state into account.
type NotNowError struct {
	Verdict plan.Verdict
	Message string
}

// Error returns the message.
func (e *NotNowError) Error() string { return e.Message }

// createClaim creates a claim from its pool and the plan.
func (x *Executor) createClaim(ctx context.Context, a plan.CreateClaim) error {
	pool := &karpv1.NodePool{}
	if err := x.Client.Get(ctx, types.NamespacedName{Name: a.NewClaim.Pool}, pool); err != nil {
		if apierrors.IsNotFound(err) {
			return poolGone(a.NewClaim.Pool)
		}
		return fmt.Errorf("reading its pool: %w", err)
	}
	if string(pool.UID) != a.NewClaim.PoolUID || !pool.DeletionTimestamp.IsZero() {
		return poolGone(pool.Name)
	}
	if !a.NewClaim.OfGeneration(pool.Generation) {
		changed := guard.PoolChanged()
		return &NotNowError{Verdict: plan.Verdict{Code: plan.PoolBlocked, Rejection: changed}, Message: fmt.Sprintf("pool %s: %s", pool.Name, changed.Reason)}
	}
	claim := x.claimOf(pool, &a.NewClaim)
	claim.Annotations[karpv1.AnnotationBoughtBy] = a.Reason
	x.annotateOverlays(claim)
	err := x.Client.Create(ctx, claim)
	if apierrors.IsAlreadyExists(err) {
		return x.alreadyThere(ctx, claim)
	}
	if err != nil {
		return err
	}
	x.Store.Wrote(claim)
	x.tellIgnored(pool)
	x.Metrics.NodeClaimsCreated.WithLabelValues(a.Reason, pool.Name, claim.Annotations[karpv1.AnnotationMinValuesRelaxed]).Inc()
	x.announce(a.NewClaim.Pods, claim.Name, "")
	return nil
}

// annotateOverlays records which NodeOverlays changed the types that the claim may become.
func (x *Executor) annotateOverlays(claim *karpv1.NodeClaim) {
	if x.Overlays == nil {
		return
	}
	price, capacity := x.Overlays(claim)
	if price {
		claim.Annotations[karpv1.AnnotationPriceOverlayApplied] = "true"
	}
	if capacity {
		claim.Annotations[karpv1.AnnotationCapacityOverlayApplied] = "true"
	}
}

// tellIgnored reports the annotations of the pool's template that are not copied to its claims.
func (x *Executor) tellIgnored(pool *karpv1.NodePool) {
	var ignored []string
	for key := range pool.Spec.Template.ObjectMeta.Annotations {
		if karpv1.WrittenOnClaims(key) {
			ignored = append(ignored, key)
		}
	}
	if len(ignored) > 0 {
		slices.Sort(ignored)
		x.Recorder.Emit(telemetry.AnnotationsIgnored(pool, ignored))
	}
}

func poolGone(name string) error {
	return &NotNowError{Verdict: plan.Verdict{Code: plan.PoolGone}, Message: fmt.Sprintf("pool %s is gone, or another of the same name", name)}
}

// alreadyThere handles a name that is taken. It succeeds if the existing claim is the same claim, created before. It
// fails if the existing claim is being deleted or belongs to another pool.
func (x *Executor) alreadyThere(ctx context.Context, claim *karpv1.NodeClaim) error {
	there := &karpv1.NodeClaim{}
	if err := x.Live.Get(ctx, client.ObjectKeyFromObject(claim), there); err != nil {
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading the claim that has the name: %w", err)
		}
		return &NotNowError{Verdict: plan.Verdict{Code: plan.NodeGone, Node: claim.Name}, Message: "a claim of that name was deleted just now"}
	}
	x.Store.Wrote(there)
	if !there.DeletionTimestamp.IsZero() {
		return &NotNowError{Verdict: plan.Verdict{Code: plan.NodeLeaving, Node: claim.Name}, Message: "a claim of the name is being deleted"}
	}
	owner := claim.OwnerReferences[0]
	if !slices.ContainsFunc(there.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == owner.UID }) {
		return &NotNowError{Verdict: plan.Verdict{Code: plan.NodeTaken, Node: claim.Name},
			Message: fmt.Sprintf("the name belongs to a claim of another pool than %s", owner.Name)}
	}
	return nil
}

// claimOf builds the claim. The finalizer is set at creation, so that no claim can disappear without its machine.
func (x *Executor) claimOf(pool *karpv1.NodePool, planned *plan.NewClaim) *karpv1.NodeClaim {
	template := pool.Spec.Template.DeepCopy()
	claim := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name:        planned.Name,
			Labels:      x.labelsOf(template, planned),
			Annotations: maps.Clone(template.ObjectMeta.Annotations),
			Finalizers:  []string{karpv1.FinalizerTermination},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: karpv1.GroupVersion.String(), Kind: "NodePool", Name: pool.Name, UID: pool.UID, BlockOwnerDeletion: new(true),
			}},
		},
		Spec: karpv1.NodeClaimSpec{
			Taints:                 template.Spec.Taints,
			StartupTaints:          template.Spec.StartupTaints,
			Requirements:           requirementsOf(planned.Requirements),
			Resources:              karpv1.ResourceRequirements{Requests: requestsOf(planned.Requests)},
			NodeClassRef:           template.Spec.NodeClassRef,
			TerminationGracePeriod: template.Spec.TerminationGracePeriod,
			ExpireAfter:            template.Spec.ExpireAfter,
		},
	}
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	maps.DeleteFunc(claim.Annotations, func(key, _ string) bool { return karpv1.WrittenOnClaims(key) })
	claim.Annotations[karpv1.AnnotationNodePoolHash] = pool.Hash()
	claim.Annotations[karpv1.AnnotationNodePoolHashVersion] = karpv1.HashVersion
	if settings, own := pool.Annotations[karpv1.AnnotationKubelet]; own {
		claim.Annotations[karpv1.AnnotationKubelet] = settings
	}
	claim.Annotations[karpv1.AnnotationMinValuesRelaxed] = strconv.FormatBool(planned.MinValuesRelaxed)
	if refs := planned.PodRefs(); len(refs) > 0 {
		claim.Annotations[karpv1.AnnotationPods] = model.JoinPodRefs(refs)
	}
	return claim
}

// labelsOf returns the template's labels, the labels that identify pool and node class, and a value for every
// user-defined label that the requirements contain. The cloud does not set those on the node, so they must be on the
// claim.
func (x *Executor) labelsOf(template *karpv1.NodeClaimTemplate, planned *plan.NewClaim) map[string]string {
	labels := map[string]string{}
	for _, r := range planned.Requirements {
		if r.Operator == label.In && len(r.Values) > 0 && !x.WellKnown[r.Key] && r.Key != model.LabelHostname {
			labels[r.Key] = slices.Min(r.Values)
		}
	}
	maps.Copy(labels, template.ObjectMeta.Labels)
	maps.Copy(labels, planned.Labels)
	labels[karpv1.LabelNodePool] = planned.Pool
	class := template.Spec.NodeClassRef
	labels[karpv1.NodeClassLabel(class.Group, class.Kind)] = class.Name
	return labels
}

func requirementsOf(planned []label.Requirement) []karpv1.Requirement {
	requirements := make([]karpv1.Requirement, 0, len(planned))
	for _, r := range planned {
		if r.Key == model.LabelHostname {
			continue
		}
		requirement := karpv1.Requirement{Key: r.Key, Operator: karpv1.Operator(r.Operator.String()), Values: r.Values}
		if r.MinValues > 0 {
			requirement.MinValues = new(r.MinValues)
		}
		requirements = append(requirements, requirement)
	}
	return requirements
}

func requestsOf(amounts []quantity.Amount) corev1.ResourceList {
	byName := make(map[string]int64, len(amounts))
	for _, a := range amounts {
		byName[a.Name] += a.Value
	}
	return cloud.ResourceList(byName)
}

// announce emits events about where pods are planned to go. Either name may be empty.
func (x *Executor) announce(pods []*model.Pod, claim, node string) {
	for _, p := range plan.Waiting(pods) {
		x.Recorder.Emit(telemetry.Nominated(PodReference(p), claim, node))
	}
}

// PodReference returns the fields of a pod that an event about it needs.
func PodReference(p *model.Pod) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: types.UID(p.UID)},
	}
}
