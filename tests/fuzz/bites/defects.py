"""The patches: a piece of a file, and what stood there when it was wrong."""


class Bite:
    """One defect, put back.

    Attributes:
        name: What it is.
        net: The net that finds it; or tests, as for pytest, where a net cannot.
        changes: File, piece of it, what to put there; and so on.
        seed: Where the net starts.
    """

    def __init__(self, name: str, net: str, *changes: str, seed: int = 1) -> None:
        self.name, self.net, self.seed = name, net, seed
        self.changes = list(zip(changes[::3], changes[1::3], changes[2::3], strict=True))


BITES = (
    Bite(
        "lanes converge at the post-dominators of branches alone", "convergence",
        "simulator/compile/cfg/convergence.py",
        "        if len(others) != 1 or ", "        if True or ",
    ),
    Bite(
        "a return with statements of its own is another way out",
        "tests/simulator/execute/progress/test_convergence.py",
        "simulator/compile/cfg/convergence.py",
        "return self.graph.onward[node]", "return node",
    ),
    Bite(
        "fairness lets lanes of a warp go that wait for others to converge",
        "tests/simulator/execute/progress/test_picked.py",
        "simulator/execute/machine.py",
        "lanes = self.splits.leaders(number, groups)\n            if",
        "lanes = groups[number]\n            if",
    ),
    Bite(
        "lanes that come to a block at different times run it as one",
        "tests/simulator/observe/test_divergence_truth.py",
        "simulator/execute/sync/lane_groups.py", "if what == NEW:\n            self.renew(lanes)",
        "if what == NEW:\n            return",
    ),
    Bite(
        "a pack of two words has another dtype than its register", "ptx",
        "simulator/isa/scalar/mov_prmt.py", "return (a | (b << word.type(half))).view(dtype)",
        "return a | (b << word.type(half))",
    ),
    Bite(
        "lanes that wait are not looked at again when others exit", "ptx",
        "simulator/execute/machine.py",
        "state.on_exit = (gates.look_again, clusters.look_again)",
        "state.on_exit = (clusters.look_again,)",
    ),
    Bite(
        "a guard that is the first of two destinations is read after it was written", "ptx",
        "simulator/compile/passes/predication.py", " or targets > 1", "",
        seed=466,
    ),
    Bite(
        "a guarded write ends a register's life", "ptx",
        "simulator/compile/cfg/basic_blocks.py",
        "            if ins.guard is None:\n                block.defs |= set(role.writes)",
        "            if True:\n                block.defs |= set(role.writes)",
    ),
    Bite(
        "what lanes that wait still need is written over", "ptx",
        "simulator/compile/codegen/liveness.py",
        "            numbers = (self.numbers[name] for name in names if name in self.numbers)\n",
        "            numbers = set[int]()\n",
    ),
    Bite(
        "what lanes may ask each other for is kept no longer than it is read",
        "tests/simulator/compile/test_needed.py", "simulator/compile/codegen/liveness.py",
        "if name in asked or name not in", "if name not in",
    ),
    Bite(
        "a write that knows of the last write is not held against reads",
        "tests/simulator/execute/sync/test_mbarrier.py", "simulator/races/check/shadow_check.py",
        'if site.access == "load" and known.any():', "if known.any():",
    ),
    Bite(
        "all from the first byte of a copy on is taken for written",
        "tests/simulator/races/in_flight/test_bulk.py",
        "simulator/races/check/shared_memory.py",
        "self.written[place] = True", "self.written[place.min(initial=0) :] = True",
    ),
    Bite(
        "bytes below a shared array are taken for bytes of it",
        "tests/architecture/test_named_mutants.py",
        "simulator/memory/memories.py",
        "            if low < first or high + nbytes > end:",
        "            if high + nbytes > end:",
    ),
    Bite(
        "the memo of intervals ignores what was written before",
        "tests/architecture/test_named_mutants.py",
        "simulator/races/check/barrier_intervals.py", "        key = (\n            self.state,",
        "        key = (\n            0,",
    ),
    Bite(
        "divergent branches: warps counted, not the ones that part",
        "tests/simulator/observe/test_counts.py",
        "simulator/execute/calls/terminators.py",
        "callback(block, taking + leaving - total)", "callback(block, taking)",
    ),
    Bite(
        "lanes that meet as a part of their warp hand on no fences", "races",
        "simulator/races/check/sync_observer.py",
        "    at, together = found >> 32, found & 0xFFFFFFFF",
        "    at, together = found >> 32, found & 0xFFFFFFFF\n"
        "    kept = together == g.existing[at % g.warps, 0]\n"
        "    at, together = at[kept], together[kept]",
    ),
    Bite(
        "threads that meet as a part of their block hand on no fences", "races",
        "simulator/races/order/sync_events.py",
        "if len(self.threads) != len(self.blocks) * size:", "if False:",
    ),
    Bite(
        "who arrives at a barrier hands on no fences", "races",
        "simulator/races/order/fence_state.py", "come = self.arrived.pop(at, None) if at else None",
        "come = None",
    ),
    Bite(
        "blocks of a cluster hand each other no fences", "races",
        "simulator/races/order/release_acquire.py", "for scope in self._scopes[int(far) :]:",
        "for scope in [] if far else self._scopes:",
    ),
    Bite(
        "a fence hands on nothing of the cluster's other blocks", "races",
        "simulator/races/order/happens_before.py", "self.cluster.others(mine, column)", "{}",
    ),
    Bite(
        "what one block of a cluster has acquired is not the others'", "races",
        "simulator/races/order/release_acquire.py",
        "if far and self._acquired.blocks():", "if False:",
    ),
    Bite(
        "a relaxed arrival at the barrier of a cluster hands on all", "races",
        "simulator/races/order/cluster_clocks.py",
        "given[which] = now if releases", "given[which] = now if 1",
    ),
    Bite(
        "a relaxed arrival at an mbarrier hands on all", "races",
        "simulator/races/order/happens_before.py",
        "given = self.unfenced.given(threads, column, far)",
        "given = self.gives(threads, column, now, far)",
    ),
    Bite(
        "a relaxed wait at an mbarrier takes no fence", "races",
        "simulator/races/order/happens_before.py", "self.unfenced.wait(place, threads, over)",
        "self.hear(threads, place[0], over, now)",
    ),
    Bite(
        "relaxed looks: a barrier of the block makes them acquires", "races",
        "simulator/races/order/release_acquire.py",
        "                for known in (self._acquired, self._met):\n",
        "                self._effective(event.threads, event.time, DEVICE, None)\n"
        "                for known in (self._acquired, self._met):\n",
    ),
    Bite(
        "relaxed looks: L1 holds nothing from before them", "races",
        "simulator/races/order/stale_reads.py",
        "return bool(((fewest >= 0) & (fewest < self.known)).any())", "return False",
    ),
    Bite(
        "order by chance: what a readers' lock gave in one run is order", "races",
        "simulator/rerun/driver.py",
        "find_races_in_other_orders(launch, first, precision, together, is_same_in_all)", "pass",
    ),
    Bite(
        "a slot that is freed early is said to be read too early",
        "tests/simulator/races/order/test_handed_slots.py",
        "simulator/races/report/program_order.py", "if direct != direct_other:", "if False:",
        "simulator/races/report/program_order.py", "if behind and not", "if False and not",
    ),
    Bite(
        "who waits for one that looks at a flag has not looked at it",
        "tests/simulator/races/order/test_steered_elsewhere.py", "simulator/analysis/influence.py",
        " and access.block in self._behind(read)", " and False",
    ),
    Bite(
        "who has let a lock go comes after its holders for good",
        "tests/simulator/races/order/test_locks_by_chance.py",
        "simulator/races/order/locks.py", "puts[-1].turn > takes[-1].turn", "False",
    ),
    Bite(
        "who arrives at a barrier knows by that what a flag said",
        "tests/simulator/races/order/test_parts_of_blocks.py",
        "simulator/races/order/release_acquire.py",
        "        if event.completes:\n",
        "        self._effective(event.threads, event.time, DEVICE, None)\n"
        "        if event.completes:\n",
    ),
    Bite(
        "local memory is not interleaved", "tests/simulator/observe/test_counts.py",
        "simulator/observe/counters/traffic_counter.py",
        "address = interleaved(address, self._shape.thread_ids) - np.int64(site.offset)",
        "address = address - np.int64(site.offset)",
    ),
    Bite(
        "waiting threads of different blocks are compared", "ptx",
        "simulator/execute/sync/barrier_divergence.py",
        "both = blocks_of(here) & blocks_of(there) & ~reported",
        "both = np.ones_like(reported) & ~reported",
    ),
    Bite(
        "lanes of a warp that come to one place in turns are called apart", "ptx",
        "simulator/execute/sync/barrier_divergence.py",
        "for wait, lanes in (places[number] for number in sorted(places)):",
        "for wait, lanes in members:",
    ),
    Bite(
        "a modifier that no row knows is accepted", "modifiers",
        "simulator/isa/validity.py", "        return invalid(ins, matches.why)",
        "        return None",
    ),
    Bite(
        "a function's name stands in generated text", "mutate",
        "simulator/compile/program.py",
        '({given}):")', '({given}):  # {self.block.function.name}")',
        "kernels/ptx/lexer.py", 'if token.kind != "word" or token.text[0] in ".@":',
        'if token.kind not in ("word", "string"):',
    ),
    Bite(
        "volatile is taken for an order", "races",
        "simulator/memory/site.py",
        'return self.access != "atomic" and "volatile" in self.instruction.modifiers',
        "return False",
    ),
    Bite(
        "undefined bits: only the last of the contents that are tried counts", "unset",
        "simulator/isa/definedness.py", "found = [bits | (new ^ old) for",
        "found = [new ^ old for",
    ),
    Bite(
        "undefined bits: a comparison is never tried with equal operands", "unset",
        "simulator/isa/definedness.py", "        yield tuple(equal)\n", "        yield operands\n",
    ),
    Bite(
        "undefined bits: a store over what nothing wrote leaves it unset", "unset",
        "simulator/memory/definedness.py",
        "        self.uninitialised_v_bits.store("
        "base, mask, *(value.dtype.type(0) for value in values))\n",
        "",
    ),
    Bite(
        "undefined bits: what is shorter than eight bytes counts as padding", "unset",
        "simulator/observe/checks/padding.py", "    return bool(undefined.any())\n",
        "    whole = (undefined == 255).astype(np.int8)\n"
        "    edges = np.flatnonzero(np.diff(whole, prepend=0, append=0))\n"
        "    return bool((edges[1::2] - edges[::2] >= 8).any())\n",
        seed=72,
    ),
    Bite(
        "undefined bits: that something counts as padding is not said", "unset",
        "simulator/observe/checks/undefined_uses.py",
        "                    self.assumed.add(array.name)\n",
        "                    pass\n",
        seed=300,
    ),
    Bite(
        "undefined bits: bit fields are counted from the wrong end", "unset",
        "kernels/debug/types.py", "8 * place + whole - offset - width",
        "8 * place + offset",
        seed=438,
    ),
    Bite(
        "undefined bits: a guard is no use", "unset",
        "simulator/compile/passes/definedness.py",
        "            steps += self.uses(probe, None, step.guard)\n", "",
    ),
    Bite(
        "the write at the end of an asynchronous copy is forgotten", "races",
        "simulator/races/in_flight/async_copies.py",
        "                self.race.access(copy.event._replace(mask=mask, repeated=False))\n", "",
        seed=821,
    ),
    Bite(
        "waiting for all but some groups of copies waits for all", "races",
        "simulator/races/in_flight/async_copies.py",
        "self.groups[queue] - pending, ", "self.groups[queue], ",
    ),
    Bite(
        "what arrives at an mbarrier is there before its phase is over", "races",
        "simulator/races/in_flight/in_flight.py",
        "or self.over is None or not self.over.any():", "or self.over is None:",
        "simulator/races/in_flight/in_flight.py",
        "return self.over & among(self.barrier,", "return among(self.barrier,",
        "simulator/races/in_flight/in_flight.py",
        "found[:, column] = self.over[:, column] & among(", "found[:, column] = among(",
        seed=1,
    ),
    Bite(
        "any fence between the proxies will do", "races",
        "simulator/races/in_flight/proxy_fences.py",
        "passed = own | (known >= times[open_])", "passed = own | True",
    ),
    Bite(
        "lanes at copies of a warp instruction do not meet", "ptx",
        "simulator/execute/sync/warp_sync.py",
        "        if len(numbers) < 2:", "        if numbers:",
    ),
    Bite(
        "lanes that were picked out lose what they write to a register alike in a block", "ptx",
        "simulator/execute/progress/lane_compaction.py",
        'np.array(whole, order="C")', "np.array(whole)",
    ),
    Bite(
        "lanes that were picked out lose what they write to a register alike in a block (CUDA)",
        "cuda",
        "simulator/execute/progress/lane_compaction.py",
        'np.array(whole, order="C")', "np.array(whole)",
        seed=12,
    ),
    Bite(
        "a sum of a chain that something else reads is left out", "ptx",
        "simulator/compile/passes/fuse_fma_chains.py", "return readers == [other]", "return True",
    ),
    Bite(
        "loads on both sides of a store are done together", "ptx",
        "simulator/compile/passes/group_loads.py",
        'isinstance(step, MemoryOp) and step.site.access == "load" and not step.site.strong',
        "isinstance(step, MemoryOp)",
    ),
    Bite(
        "quotients of negative numbers are rounded down", "cuda",
        "simulator/isa/scalar/multiply.py", "np.where((a < 0) != (b < 0), -quotient, quotient)",
        "np.where((a < 0) != (b < 0), -quotient - 1, quotient)",
    ),
    Bite(
        "data that an atomic may add nothing of are not said to decide on a race", "claims",
        "simulator/observe/observers.py",
        "numbers |= racing & atomics if group.reads else racing",
        "numbers |= set() if group.reads else racing",
        seed=1,
    ),
    Bite(
        "data that were kept in shared memory are forgotten", "claims",
        "simulator/analysis/taint.py", "news |= set(self._leaves(site, function))", "pass",
    ),
    Bite(
        "a read-only load is taken for a plain one", "promises",
        "simulator/observe/checks/read_only_path.py",
        'return site.access == "load" and (texture or site.instruction.has("nc"))',
        'return site.access == "load" and texture',
    ),
    Bite(
        "no array is looked for that two restricted pointers reach", "promises",
        "kernels/source/restrict_pointers.py",
        "return Pointers(arrays, names) if names else Pointers()", "return Pointers()",
    ),
    Bite(
        "what pointers are based on is lost in local memory", "promises",
        "simulator/analysis/pointer_bases.py", "if site.space not in ADDRESSABLE_SPACES:",
        "if site.space:",
    ),
    Bite(
        "a null pointer is taken for another base", "promises",
        "simulator/analysis/pointer_bases.py", "_NUMBER if isinstance(o, Imm) else OTHER", "OTHER",
    ),
    Bite(
        "an atomic is no write to a read-only load", "promises",
        "simulator/observe/checks/read_only_path.py", 'site.access != "load", self._base(',
        'site.access == "store", self._base(',
    ),
    Bite(
        "native code marks the host's unset bytes as written", "engines",
        "simulator/native/state.py", "self._address(allocation.own_flags())",
        "self._address(allocation.missing)",
    ),
    Bite(
        "contraction makes a difference between builds", "tests/simulator/rerun/test_differing.py",
        "tilescope/check/build_comparison.py",
        "self._without(found, self._contracted(), other)", "pass",
    ),
    Bite(
        "the order of atomics makes a difference between builds",
        "tests/simulator/rerun/test_differing.py",
        "tilescope/check/build_comparison.py",
        "any(map(ordered_by_atomics, self.kernels.values()))", "False",
    ),
    Bite(
        "a function that the compiler evaluates makes a difference between builds",
        "tests/simulator/rerun/test_differing.py",
        "tilescope/check/build_comparison.py",
        "odd = perturbed(self.kernels[_SOURCE]) if found else None",
        "odd = None",
    ),
    Bite(
        "one run is enough to say that the optimiser removed a hazard",
        "tests/simulator/rerun/test_differing.py",
        "tilescope/check/build_comparison.py", "hazards = merge(runs, self._tried(runs))",
        "hazards = merge(runs, [])",
    ),
)  # fmt: skip
