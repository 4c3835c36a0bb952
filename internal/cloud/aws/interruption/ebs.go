package interruption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// volumesFor is how long the volumes of a machine must have been impaired. EBS repairs most impairments within minutes.
// https://docs.aws.amazon.com/ebs/latest/userguide/monitoring-volume-checks.html
const volumesFor = 5 * time.Minute

// onOwnVolumes returns the statuses of the machines whose own volumes are impaired: the attached EBS status of an
// instance covers all volumes, also those of pods, which another node would not help. The volumes are read only if there
// is a status of one of our machines. Machines whose own volumes cannot be read are returned as Unread, with an error. An
// error without statuses says nothing about any machine.
func (w *Watcher) onOwnVolumes(ctx context.Context, statuses []Status) ([]Status, error) {
	var ids []string
	for _, s := range statuses {
		ids = append(ids, s.Instance)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	claims, err := w.opts.Claims(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("finding the claims of %d machines with impaired volumes: %w", len(ids), err)
	}
	statuses = slices.DeleteFunc(statuses, func(s Status) bool { c, ours := claims[s.Instance]; return !ours || c.Other })
	if len(statuses) == 0 {
		return nil, nil
	}
	impaired, err := w.impairedVolumes(ctx)
	if err != nil {
		return nil, err
	}
	var found []Status
	var errs []error
	for _, s := range statuses {
		volumes, err := w.opts.Volumes(ctx, s.Instance)
		if err != nil {
			errs = append(errs, fmt.Errorf("reading the volumes of instance %s: %w", s.Instance, err))
			found = append(found, Status{Instance: s.Instance, Unread: true})
			continue
		}
		if slices.ContainsFunc(volumes, func(id string) bool { return impaired[id] }) {
			found = append(found, Status{Instance: s.Instance}) // since the first sight: EC2 has no time for volumes
		}
	}
	return found, errors.Join(errs...)
}

// impairedVolumes returns the volumes of the account that are impaired. The filter keeps the answer short, and each
// status in it is evaluated.
func (w *Watcher) impairedVolumes(ctx context.Context) (map[string]bool, error) {
	impaired := string(ec2types.VolumeStatusInfoStatusImpaired)
	pages := ec2.NewDescribeVolumeStatusPaginator(w.ec2, &ec2.DescribeVolumeStatusInput{
		Filters: []ec2types.Filter{{Name: aws.String("volume-status.status"), Values: []string{impaired}}}, MaxResults: aws.Int32(1000)})
	found := map[string]bool{}
	for page, err := range pagesOf(ctx, w, operation{serviceEC2, "DescribeVolumeStatus", 0, "ec2:DescribeVolumeStatus"}, pages) {
		if err != nil {
			return nil, err
		}
		for _, v := range page.VolumeStatuses {
			if v.VolumeStatus != nil && v.VolumeStatus.Status == ec2types.VolumeStatusInfoStatusImpaired {
				found[aws.ToString(v.VolumeId)] = true
			}
		}
	}
	return found, nil
}

// ebsImpaired reports whether EC2 cannot reach volumes of an instance: the summary is impaired and the check has failed.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_EbsStatusSummary.html
func ebsImpaired(s *ec2types.EbsStatusSummary) bool {
	return s != nil && s.Status == ec2types.SummaryStatusImpaired &&
		slices.ContainsFunc(s.Details, func(d ec2types.EbsStatusDetails) bool { return d.Status == ec2types.StatusTypeFailed })
}
