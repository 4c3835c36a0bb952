package offline

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	"github.com/karpenter-go/karpenter/plugin/admission"
	"github.com/karpenter-go/karpenter/plugin/admission/builtin"
)

// admitted are the kinds of which files are checked as an API server would check them.
var admitted = []metav1.TypeMeta{ours("NodePool"), ours("NodeClaim"), {APIVersion: awsv1.GroupVersion.String(), Kind: awsv1.Kind},
	{APIVersion: karpv1alpha1.GroupVersion.String(), Kind: "NodeOverlay"},
	{APIVersion: autoscalingv1beta1.GroupVersion.String(), Kind: autoscalingv1beta1.Kind},
	{APIVersion: autoscalingv1beta1.GroupVersion.String(), Kind: autoscalingv1beta1.KindQuota},
	{APIVersion: autoscalingv1beta1.Group + "/v1alpha1", Kind: autoscalingv1beta1.Kind}, // which have the same fields
	{APIVersion: autoscalingv1beta1.Group + "/v1alpha1", Kind: autoscalingv1beta1.KindQuota}}

// ours returns the type of a kind of karpenter.sh.
func ours(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: karpv1.GroupVersion.String(), Kind: kind}
}

// apiServer is one for the process: compiling its rules takes longer than most decisions.
var apiServer = sync.OnceValues(admission.New)

// admit returns an object of a file as an API server would store it, with the status of the file, or why it would be
// rejected, field by field. Objects of other kinds are returned unchanged.
func admit(kind metav1.TypeMeta, text []byte) (stored []byte, wrong []error) {
	if !slices.Contains(admitted, kind) {
		return text, nil
	}
	server, err := apiServer()
	if err != nil {
		return nil, []error{err}
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, []error{err}
	}
	completed, refusals, err := server.Admit(object)
	if err != nil {
		return nil, []error{err}
	}
	for _, r := range refusals {
		if r.Field == "" {
			r.Field = "the object"
		}
		wrong = append(wrong, fmt.Errorf("%s: %s", r.Field, r.Problem))
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	if status, given := object["status"]; given {
		completed["status"] = status
	}
	if stored, err = json.Marshal(completed); err != nil {
		return nil, []error{err}
	}
	return stored, nil
}

// refuse reports what an API server would refuse, or warn about, of an object of Kubernetes' own kinds. A pod that an API
// server has stored was checked there: a dump has many.
func (o *Manifests) refuse(origin string, head *objectHead, object runtime.Object) bool {
	if pod, is := object.(*corev1.Pod); is && pod.ResourceVersion != "" {
		return false
	}
	if meta, is := object.(metav1.Object); !is || meta.GetName() == "" && meta.GetGenerateName() == "" { // reported by take
		return false
	}
	var wrong []error
	for _, refusal := range builtin.Refusals(object) {
		wrong = append(wrong, refusal)
	}
	if pdb, is := object.(*policyv1.PodDisruptionBudget); is {
		if err := budgetProblem(&pdb.Spec); err != nil {
			wrong = append(wrong, err)
		}
	}
	if len(wrong) > 0 {
		o.reject(origin, head, wrong)
		return true
	}
	for _, warning := range builtin.Warnings(object) {
		o.warned.add(head.Kind, namespaced(head.Metadata.Namespace, head.Metadata.Name), warning)
	}
	return false
}
