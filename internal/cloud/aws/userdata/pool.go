package userdata

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// WithKubelet returns the class with the kubelet settings of a pool or a claim with these annotations. In v1beta1 these
// settings belonged to the pool. They are stored in an annotation and replace those of the class. The class itself is
// not modified. An error describes what the kubelet would reject.
func WithKubelet(class *awsv1.EC2NodeClass, annotations map[string]string) (*awsv1.EC2NodeClass, error) {
	text, ok := annotations[karpv1.AnnotationKubelet]
	if !ok {
		return class, nil
	}
	settings := &awsv1.KubeletConfiguration{}
	if !bytes.HasPrefix(bytes.TrimSpace([]byte(text)), []byte("{")) {
		return nil, fmt.Errorf("reading the annotation %s: want a JSON object such as {\"maxPods\":110}", karpv1.AnnotationKubelet)
	}
	if err := json.Unmarshal([]byte(text), settings); err != nil {
		return nil, fmt.Errorf("reading the annotation %s: %w", karpv1.AnnotationKubelet, err)
	}
	var refused *KubeletError
	if errors.As(CheckKubelet(class.Family(), settings), &refused) {
		return nil, fmt.Errorf("reading the annotation %s: %w", karpv1.AnnotationKubelet, refused)
	}
	if e := settings.Expressions(); len(e) > 0 {
		return nil, fmt.Errorf("reading the annotation %s: %s is %q, want a number or a quantity; expressions belong into %s of the EC2NodeClass",
			karpv1.AnnotationKubelet, e[0].Field, e[0].Text, e[0].Path())
	}
	own := class.DeepCopy()
	own.Spec.Kubelet = settings
	if own.Annotations == nil {
		own.Annotations = map[string]string{}
	}
	own.Annotations[karpv1.AnnotationKubelet] = text // distinguishes it in the cache of instance types
	return own, nil
}
