package launch

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/google/go-cmp/cmp"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// Placeholders in tags are replaced in all resources of a launch. Claims of two pools are launched apart, with the tags
// of their pools.
func TestTagPlaceholders(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		plain := w.class.Hash()
		w.class.Spec.Tags = map[string]string{"Name": "{{cluster}}-{{nodepool}}", "owner": "{{ nodeclass }} {{team}}"}
		if w.class.Hash() == plain {
			t.Error("other tags have the same hash")
		}
		l := w.launcher()
		for _, pool := range []string{"batch", "web"} {
			order := w.order("claim-" + pool)
			order.Claim.Labels[karpv1.LabelNodePool] = pool
			_, err := l.Launch(ctx, order)
			w.must(err)
			want := map[string]string{"Name": cluster + "-" + pool, "owner": "default {{team}}"}
			shown := func(kind string, all map[string]string) {
				got := map[string]string{"Name": all["Name"], "owner": all["owner"]}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("tags of the %s of pool %s -want +got:\n%s", kind, pool, diff)
				}
			}
			for _, i := range w.sim.Instances() {
				if i.Tags["karpenter.sh/nodepool"] == pool {
					shown("instance", i.Tags)
				}
			}
			p := planOf(t, order)
			for _, template := range p.templates {
				shown("launch template", template.tags)
				shown("network interface", tagMap(template.data.TagSpecifications[0].Tags))
				out, err := w.ec2.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{template.name}})
				w.must(err)
				shown("launch template in EC2", tagMap(out.LaunchTemplates[0].Tags))
				if name := aws.ToString(out.LaunchTemplates[0].LaunchTemplateName); name != template.name {
					t.Errorf("EC2 has the launch template %s, want %s", name, template.name)
				}
			}
		}
		if n := len(w.sim.Instances()); n != 2 {
			t.Errorf("%d instances, want 2", n)
		}
	})
}
