package execute

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// noteRefusal reports a response that would be the same again (a rejection by an admission policy, an invalid object)
// to the store and to users. Without this, the next plan would be the same, and its pods would never get a node that
// another pool could provide.
func (x *Executor) noteRefusal(a plan.CreateClaim, err error) {
	if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) && !apierrors.IsBadRequest(err) {
		return
	}
	why := telemetry.Truncate(err.Error())
	x.Store.Refuse(a.NewClaim.Pool, a.NewClaim.PoolUID, why)
	x.Recorder.Emit(telemetry.ClaimRefused(&karpv1.NodePool{
		TypeMeta:   metav1.TypeMeta{APIVersion: karpv1.GroupVersion.String(), Kind: "NodePool"},
		ObjectMeta: metav1.ObjectMeta{Name: a.NewClaim.Pool, UID: types.UID(a.NewClaim.PoolUID)},
	}, why))
}
