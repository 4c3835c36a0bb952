package doctor

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	awsv1alpha1 "github.com/karpenter-go/karpenter/api/aws/v1alpha1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	"github.com/karpenter-go/karpenter/internal/cloud"
)

// older are Provisioners and AWSNodeTemplates that were deleted, and that no controller lets go of.
func older(f *Facts, o Options) []cloud.Finding {
	var list []cloud.Finding
	add := func(kind, class string, object *metav1.ObjectMeta) {
		at := slices.Index(object.Finalizers, karpv1.FinalizerMadeFrom)
		if at < 0 || object.DeletionTimestamp == nil {
			return
		}
		late := f.at().Sub(object.DeletionTimestamp.Time)
		if late <= o.Patience {
			return
		}
		kind = strings.ToLower(kind)
		whose := "the controller that it was kept by"
		if class != "" {
			whose = "the controller of the provider of " + class
		}
		list = append(list, found(OlderNotReleased, kind+"/"+object.Name,
			fmt.Sprintf("it was deleted %s ago, and the finaliser %s holds it until %s has let go of what was made from it", round(late), karpv1.FinalizerMadeFrom, whose),
			"run that controller (--cloud-provider), and look at its log; or, if none is to run again, take the owner references off the NodePools and node classes that are to stay, since all others are deleted then, and kubectl patch "+
				kind+" "+object.Name+" --type=json -p '"+withoutFinaliser(at, karpv1.FinalizerMadeFrom)+"'"))
	}
	for i := range f.Provisioners {
		p := &f.Provisioners[i]
		class, _, _ := strings.Cut(p.Status.NodeClass, "/")
		add(karpv1alpha5.Kind, class, &p.ObjectMeta)
	}
	for i := range f.Templates {
		add(awsv1alpha1.Kind, awsv1.Kind, &f.Templates[i].ObjectMeta)
	}
	return list
}
