package cq

import (
	"errors"

	"github.com/stratalog/stratalog/contract"
)

// extDamage looks at the extension units that share a sector with what was being
// written when the power went, and so may have gone with it. It returns the
// first unit of the queue, below end, that leads to one that is gone.
func (c *cutter) extDamage(q *queue, end int64) (int64, bool, error) {
	s := c.s
	if starts, err := s.extStarts(s.extDir(q.topic, q.id)); err != nil || len(starts) == 0 {
		return 0, false, err
	}
	edge, bad := int64(-1), int64(-1)
	for to := end; ; {
		i, code, ok, err := s.lastAddress(q, to)
		if err != nil || !ok {
			return bad, bad >= 0, err
		}
		off := extOffset(code)
		start := off / s.ext.size * s.ext.size
		if edge < 0 {
			edge = start + (off-start)/sectorSize*sectorSize
		}
		e, err := s.ExtUnit(q.topic, q.id, code)
		switch {
		case err == nil && off+int64(e.Size()) <= edge:
			return bad, bad >= 0, nil
		case errors.Is(err, contract.ErrCorrupt):
			q.suspect(Garbage, s.extDir(q.topic, q.id)+"/"+fileName(start))
			bad = i
		case err != nil:
			return 0, false, err
		}
		to = i
	}
}
