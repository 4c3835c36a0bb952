package room

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// schedule evaluates the annotation that limits a buffer to times: a schedule and a duration, as in the budgets of
// NodePools, such as "0 7 * * 1-5/11h". closed is why the buffer asks for no pods now, "" if it does; invalid is why the
// annotation cannot be read.
func schedule(annotations map[string]string, now time.Time) (closed, invalid string) {
	text, limited := annotations[karpv1.AnnotationActive]
	if !limited {
		return "", ""
	}
	at := strings.LastIndex(text, "/")
	duration, err := time.ParseDuration(text[at+1:])
	if at < 0 || err != nil || duration <= 0 {
		return "", fmt.Sprintf(`annotation %s is %q, want a schedule and a duration, such as "0 7 * * 1-5/11h"`, karpv1.AnnotationActive, text)
	}
	window := karpv1.Budget{Schedule: new(text[:at]), Duration: &metav1.Duration{Duration: duration}}
	active, err := window.Active(now)
	if err != nil {
		return "", fmt.Sprintf("annotation %s: %v", karpv1.AnnotationActive, err)
	}
	if active {
		return "", ""
	}
	switch next, err := window.Changes(now); {
	case err != nil || next.IsZero():
		return fmt.Sprintf("outside of the times %q, which never begin", text), ""
	default:
		return fmt.Sprintf("outside of the times %q; the next begins at %s", text, next.UTC().Format(time.RFC3339)), ""
	}
}
