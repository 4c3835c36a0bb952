package removals

import (
	"strconv"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
)

// class is the node class of all pools.
var class = karpv1.NodeClassReference{Group: kwokv1alpha1.GroupVersion.Group, Kind: "KWOKNodeClass", Name: "default"}

func labelsOf(pool string) map[string]string {
	if pool == "" {
		return nil
	}
	return map[string]string{karpv1.LabelNodePool: pool, karpv1.NodeClassLabel(class.Group, class.Kind): class.Name}
}

func timeOrNil(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}

func poolObject(p Pool) karpv1.NodePool {
	o := karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: p.Name, UID: types.UID(p.UID), ResourceVersion: "1", Annotations: p.Annotations}}
	o.Spec.Template.Spec.NodeClassRef = class
	return o
}

func claimObject(c Claim) karpv1.NodeClaim {
	o := karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: c.Name, UID: types.UID(c.UID), ResourceVersion: strconv.Itoa(c.Version), Labels: labelsOf(c.Pool), Annotations: c.Annotations,
		CreationTimestamp: metav1.Time{Time: c.Created}, DeletionTimestamp: timeOrNil(c.Deleting),
	}}
	o.Spec.NodeClassRef = class
	o.Status.ProviderID, o.Status.NodeName = c.Provider, c.Node
	if c.Registered {
		o.Status.Conditions = []status.Condition{{Type: karpv1.ConditionRegistered, Status: metav1.ConditionTrue}}
	}
	return o
}

func nodeObject(n Node) corev1.Node {
	o := corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: n.Name, UID: types.UID(n.UID), ResourceVersion: strconv.Itoa(n.Version), Labels: labelsOf(n.Pool), DeletionTimestamp: timeOrNil(n.Deleting),
	}}
	o.Spec.ProviderID = n.Provider
	o.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionStatus(n.Ready), LastTransitionTime: metav1.Time{Time: n.Since}}}
	if !n.Ill.IsZero() {
		o.Status.Conditions = append(o.Status.Conditions, corev1.NodeCondition{Type: IllCondition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: n.Ill}})
	}
	return o
}

// claimOf returns the fields of a claim that identify it in a write.
func claimOf(o *karpv1.NodeClaim) Claim {
	version, err := strconv.Atoi(o.ResourceVersion)
	if err != nil {
		version = -1
	}
	return Claim{Name: o.Name, UID: string(o.UID), Version: version, Provider: o.Status.ProviderID, Pool: o.Labels[karpv1.LabelNodePool]}
}
