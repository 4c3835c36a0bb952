package offline

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/compat/admission"
)

// admitted are the kinds of which files are checked as an API server would check them.
var admitted = []metav1.TypeMeta{ours("NodePool"), ours("NodeClaim"), {APIVersion: awsv1.GroupVersion.String(), Kind: awsv1.Kind},
	{APIVersion: autoscalingv1beta1.GroupVersion.String(), Kind: autoscalingv1beta1.Kind},
	{APIVersion: autoscalingv1beta1.GroupVersion.String(), Kind: autoscalingv1beta1.KindQuota}}

// ours returns the type of a kind of karpenter.sh.
func ours(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: karpv1.GroupVersion.String(), Kind: kind}
}

// apiServer is one for the process: compiling its rules takes longer than most decisions.
var apiServer = sync.OnceValues(admission.New)

// rejections returns why an API server would reject an object of a file, field by field; none for other kinds.
func rejections(kind metav1.TypeMeta, text []byte) []error {
	if !slices.Contains(admitted, kind) {
		return nil
	}
	server, err := apiServer()
	if err != nil {
		return []error{err}
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		return []error{err}
	}
	refusals, err := server.Create(object)
	if err != nil {
		return []error{err}
	}
	var wrong []error
	for _, r := range refusals {
		if r.Field == "" {
			r.Field = "the object"
		}
		wrong = append(wrong, fmt.Errorf("%s: %s", r.Field, r.Problem))
	}
	return wrong
}
