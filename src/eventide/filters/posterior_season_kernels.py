"""The seasonal voice: a level that moves slowly, times what the calendar says, and a scatter that is new at each step.

Each bin learns its rhythm with one extended Kalman filter of level x (1 + harmonics), from looks alone. Filters of
different paces and scatters then take a count for their level times that rhythm, and are weighed by how well each
foresaw the looks.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from eventide.arrays import Array, Floats, Ints
from eventide.compiling import kernel
from eventide.filters.posterior_look_kernels import believe
from eventide.filters.posterior_scalar_kernels import bank_quantile, laplace_update

PACES = np.array([0.001, 0.01, 0.06])  # of the level a step
SCATTERS = np.array([0.0, 0.12, 0.4])  # of the level, besides that of counts of independent events
PACE, SCATTER = (models.ravel() for models in np.meshgrid(PACES, SCATTERS, indexing="ij"))
ALONE = len(PACE)  # voices that know a bin by itself; for the others it is a share of the sum of all bins
FOLLOWING = np.array([[0.001, 0.0], [0.001, 0.25], [0.01, 0.12]])  # the pace and the scatter of these
PACE, SCATTER = np.concatenate([PACE, FOLLOWING[:, 0]]), np.concatenate([SCATTER, FOLLOWING[:, 1]])
VOICES = len(PACE)
FARTHEST = 8.0  # times the usual sum: further up nothing is known of shares, as when an empty stream wakes
FOLLOWING_FIRST = 0.02  # times as likely as the others that one of these is right, beforehand
CHANGING = 0.02  # chance that another filter is right at the next look, if that look is sharp
DRIFT = 0.01  # of the level, a step, while the rhythm is learned
OUTLIER = 3.0  # deviations: beyond, a look counts no more
LEAST = 0.02  # of the level: no phase has less
REMEMBERED = 0.98  # of which foresaw looks better, the seasonal voice or the rest, from look to look
YOUNG = 30.0  # looks at a bin before which doubts are larger
NARROWEST = 1e-6  # an interval
SILENT = 1e-3  # a say
UNSEEN = 1e-20  # a chance
UNHEARD = 1e-3  # a say of all that follow the sum: what they know of a bin is then taken from the others


class SeasonRows(NamedTuple):
    """What the seasonal voice knows of each row."""

    season: Array  # (rows, waves): the level, and the harmonics relative to it
    unsure: Array  # (rows, waves, waves): their covariance
    mean: Floats  # (rows, voices): of the level after the last look, as the next
    variance: Floats
    here: Floats  # (rows, voices): of the count at the last look, with what was scatter then, as the next
    here_variance: Floats
    own: Floats  # (rows, voices): weights, as the looks say
    weight: Floats  # the same with the belief of all bins
    foresight: Floats  # (rows,): by how much more the voice foresaw the looks than the rest did, in log odds
    looks: Ints  # (rows,)


class Calendar(NamedTuple):
    """What is public of the step: where the waves stand, and how strong each is beforehand (a variance)."""

    waves: Floats
    prior: Floats


class Together(NamedTuple):
    """What the sum of all bins does, as its own looks say; `(replicas,)` all."""

    before: Floats  # the usual sum, as it was known at the last look
    usual: Floats  # as it is known now
    foreseen: Floats  # the sum at this step, before there was a look
    now: Floats  # at this step
    gain: Floats  # by how much that is more for each count that the look showed more than foreseen
    unsure: Floats  # its variance, relative to its square


class Doubts(NamedTuple):
    """When the seasonal voice keeps silent, as in `Algorithm`."""

    clear: float
    doubted: float
    too_wide: float


class Odds(NamedTuple):
    """What all bins say of each, as log odds that the seasonal voice is right; `(replicas,)` both."""

    most: Floats  # no bin has more of its own
    shared: Floats  # each bin has them besides its own


@kernel(nogil=True, error_model="numpy")
def take_season(
    rows: SeasonRows,
    calendar: Calendar,
    together: Together,
    belief: Floats,
    odds: Odds,
    row_numbers: Ints,
    looks: Floats,
    scales: Floats,
    waited: Ints,
    level: Floats,
    spread: Floats,
    rest: Floats,
    say: Floats,
    both: Floats,
    least_scale: float,
    debt: float,
    first_blur: float,
    single: float,
    change: float,
) -> None:
    """Take looks in.

    `together` is what the sum of all bins did meanwhile. `waited` are the steps since the look before, `level` and
    `spread` what the rest knows of a bin, and `rest` how well it foresaw the look, a log chance. Of looks that the rest
    foresaw better no more than `debt` is remembered, and what outweighs the odds that all bins share. The first look at
    a bin counts as `first_blur` times as blurred as it is: its level is that of one phase, and one that is held for
    known takes long to become that of the day. `single` counts scatter so far around level and season, relative to the
    level; harmonics `change` by so much of their variance beforehand a step. How well a look was foreseen by the voice
    and the rest, by the `say` of each row, becomes `both`.
    """
    bins = len(rows.looks) // len(belief)
    for index in range(len(row_numbers)):
        row, look, scale = row_numbers[index], looks[index], scales[index]
        if rows.looks[row] == 0:
            begin(rows, row, look, level[index], scale, first_blur, calendar.prior)
        else:
            factor, doubt = season_now(calendar.waves, rows.season[row], rows.unsure[row])
            telling = spread[index] / (spread[index] + scale)
            told = factor, doubt, together, row // bins
            foreseen = update(rows, row, look, scale, waited[index], telling, *told, least_scale)
            least = -debt - max(odds.shared[row // bins], 0.0)
            both[index] = foreseen_by_both(foreseen, rest[index], say[row])
            rows.foresight[row] = max(REMEMBERED * rows.foresight[row] + foreseen - rest[index], least)
            state = rows.season[row], rows.unsure[row]
            learn_season(look, scale, waited[index], single, change, calendar.waves, *state, calendar.prior)
        believe(np.log(rows.own[row]), belief[row // bins], rows.weight[row])
        rows.looks[row] += 1


@kernel(nogil=True, error_model="numpy")
def read_season(
    rows: SeasonRows,
    calendar: Calendar,
    together: Together,
    since: Ints,
    odds: Odds,
    least_scale: float,
    doubts: Doubts,
    target: float,
    quantiles: Floats,
    say: Floats,
    begin: int,
    end: int,
) -> None:
    """Give the seasonal voice its `say` in the quantiles `(3, rows)` of the rows from `begin` to `end`."""
    bins = len(rows.looks) // len(odds.most)
    voices = rows.weight.shape[1]
    place, deviation = np.empty(voices), np.empty(voices)
    for row in range(begin, end):
        say[row] = speaks(rows, row, odds.most[row // bins], odds.shared[row // bins], doubts)
        if say[row] < SILENT:
            say[row] = 0
            continue
        factor, doubt = season_now(calendar.waves, rows.season[row], rows.unsure[row])
        centre, logarithm, replica = 0.0, 0.0, row // bins
        for voice in range(voices):
            if voice == ALONE:
                factor = min(max(together.now[replica] / together.before[replica], LEAST), FARTHEST)
                doubt = factor**2 * together.unsure[replica]
            if since[row] == 0:
                place[voice], grown = rows.here[row, voice], rows.here_variance[row, voice]
            else:
                level = rows.mean[row, voice]
                place[voice] = factor * level
                grown = factor**2 * (rows.variance[row, voice] + pace(voice, level, least_scale) * since[row])
                grown += scatter(voice, level, factor, doubt)
            deviation[voice] = math.sqrt(grown)
            centre += rows.weight[row, voice] * place[voice]
            logarithm += rows.weight[row, voice] * math.log(grown)
        typical = math.exp(0.5 * logarithm)
        wider = 2 * target * typical / max(quantiles[2, row] - quantiles[0, row], NARROWEST)
        say[row] /= 1 + (wider / doubts.too_wide) ** 6
        for which in range(3):
            apart = (which - 1) * target
            found = bank_quantile(place, deviation, rows.weight[row], centre + apart * typical, apart)
            quantiles[which, row] += say[row] * (max(0.0, found) - quantiles[which, row])


@kernel(error_model="numpy")
def foreseen_by_both(voice: float, rest: float, say: float) -> float:
    """The log chance of a look, from the log chances that the voice and the rest gave it."""
    better = max(voice, rest)
    return better + math.log(say * math.exp(voice - better) + (1 - say) * math.exp(rest - better) + UNSEEN)


@kernel(error_model="numpy")
def speaks(rows: SeasonRows, row: int, most: float, shared: float, doubts: Doubts) -> float:
    """The say of the seasonal voice, from 0 to 1: where looks were better foreseen, and a level is clear.

    That is where it is `doubts.clear` times its deviation above 0.
    """
    if rows.looks[row] < 2:
        return 0.0
    level, logarithm = 0.0, 0.0
    for voice in range(rows.weight.shape[1]):
        level += rows.weight[row, voice] * rows.mean[row, voice]
        logarithm += rows.weight[row, voice] * math.log(rows.variance[row, voice])
    if level <= 0:
        return 0.0
    odds = min(rows.foresight[row], most) + shared - doubts.doubted * (1 + YOUNG / rows.looks[row])
    seen = 1 / (1 + (doubts.clear * math.exp(0.5 * logarithm) / level) ** 4)
    return seen / (1 + math.exp(min(-odds, 50.0)))


@kernel(error_model="numpy")
def begin(rows: SeasonRows, row: int, look: float, level: float, scale: float, blur: float, prior: Floats) -> None:
    """After the first look, of one phase: a level, so many times as unsure, and nothing of the season."""
    for wave in range(len(prior)):
        rows.season[row, wave] = 0
        for other in range(len(prior)):
            rows.unsure[row, wave, other] = 0
        rows.unsure[row, wave, wave] = prior[wave]
    rows.season[row, 0], rows.unsure[row, 0, 0] = level, 2 * (blur * scale) ** 2
    voices = rows.weight.shape[1]
    for voice in range(voices):
        unsure = 2 * (blur * scale) ** 2
        if voice >= ALONE:
            level, unsure = max(look, 0.0), 2 * scale * scale
        rows.mean[row, voice], rows.variance[row, voice] = level, unsure
        rows.here[row, voice], rows.here_variance[row, voice] = level, unsure
        rows.own[row, voice] = 1 / voices if voice < ALONE else FOLLOWING_FIRST / voices


@kernel(error_model="numpy")
def pace(voice: int, level: float, least_scale: float) -> float:
    """The variance that a filter's level gains a step."""
    walk: float = PACE[voice] * (least_scale / 2 + max(level, 0.0))
    return 2 * walk * walk


@kernel(error_model="numpy")
def scatter(voice: int, level: float, factor: float, doubt: float) -> float:
    """The variance of single counts around level and season, with what is not known of the season."""
    level = max(level, 0.0)
    single: float = SCATTER[voice] * factor * level
    return factor * level + single * single + doubt * level * level


@kernel(error_model="numpy")
def update(
    rows: SeasonRows,
    row: int,
    look: float,
    scale: float,
    steps: int,
    telling: float,
    factor: float,
    doubt: float,
    together: Together,
    replica: int,
    least_scale: float,
) -> float:
    """Take a look in, and give how well it was foreseen: the log of its chance.

    The look is split between level and scatter; the scatter is shown at the look and forgotten after it. The level of a
    voice that follows the sum is the count that a bin has when the sum is as usual; here the sum is taken without this
    look.
    """
    mean, variance, weight = rows.mean[row], rows.variance[row], rows.own[row]
    voices, staying = len(weight), 1 - CHANGING * telling
    mix(mean[:ALONE], variance[:ALONE], weight[:ALONE], staying, voices)
    if voices > ALONE:
        mix(mean[ALONE:], variance[ALONE:], weight[ALONE:], staying, voices)
    largest, before = -np.inf, together.before[replica]
    evidence = np.empty(voices)
    for voice in range(voices):
        if voice >= ALONE:
            surprise = look - mean[voice] * together.foreseen[replica] / before
            others = together.now[replica] - together.gain[replica] * surprise
            factor = min(max(others / before, LEAST), FARTHEST)
            doubt = factor**2 * together.unsure[replica]
        single = scatter(voice, mean[voice], factor, doubt)
        part = factor**2 * (variance[voice] + pace(voice, mean[voice], least_scale) * steps)
        whole = part + single
        moved, kept, logarithm = laplace_update(look - factor * mean[voice], whole, scale)
        rows.here[row, voice], rows.here_variance[row, voice] = factor * mean[voice] + moved, kept
        mean[voice] += part / whole * moved / factor
        variance[voice] = (part - (part / whole) ** 2 * (whole - kept)) / factor**2
        evidence[voice] = logarithm + math.log(weight[voice])
        largest = max(largest, evidence[voice])
    total = 0.0
    for voice in range(voices):
        weight[voice] = math.exp(evidence[voice] - largest)
        total += weight[voice]
    for voice in range(voices):
        weight[voice] = weight[voice] / total + 1e-12
    if voices > ALONE:
        begin_anew = np.sum(weight[ALONE:]) < UNHEARD
        best, usual = np.argmax(weight[:ALONE]), together.usual[replica] / before
        for voice in range(ALONE, voices):
            if begin_anew:
                mean[voice] = max(rows.here[row, best], 0.0) / factor
                variance[voice] = rows.here_variance[row, best] / factor**2
            mean[voice] *= usual
            variance[voice] *= usual**2
    return largest + math.log(total)


@kernel(error_model="numpy")
def mix(mean: Floats, variance: Floats, weight: Floats, staying: float, voices: int) -> None:
    """Some of the state that is believed most passes to every other filter, of so many `voices` in all."""
    best = np.argmax(weight)
    believed, known = mean[best], variance[best]
    for voice in range(len(weight)):
        own, other = staying * weight[voice], (1 - staying) / voices
        share = other / (own + other)
        apart = mean[voice] - believed
        mean[voice] -= share * apart
        variance[voice] = (1 - share) * variance[voice] + share * known + share * (1 - share) * apart * apart
        weight[voice] = own + other


@kernel(error_model="numpy")
def learn_season(
    look: float,
    scale: float,
    steps: int,
    single: float,
    change: float,
    waves: Floats,
    season: Array,
    unsure: Array,
    prior: Floats,
) -> None:
    """Take a look into level and harmonics."""
    size = len(season)
    level = max(float(season[0]), 0.0)
    unsure[0, 0] += steps * (DRIFT * level) ** 2
    factor = 1.0
    for i in range(1, size):
        unsure[i, i] += change * steps * prior[i]
        factor += season[i] * waves[i]
    slope, gain = np.empty(size), np.empty(size)
    slope[0] = factor
    for i in range(1, size):
        slope[i] = level * waves[i]
    foreseen = 2 * scale * scale + level + (single * level) ** 2
    for i in range(size):
        total = 0.0
        for j in range(size):
            total += unsure[i, j] * slope[j]
        gain[i] = total
        foreseen += slope[i] * total
    limit = OUTLIER * math.sqrt(foreseen)
    surprise = min(max(look - level * factor, -limit), limit) / foreseen
    for i in range(size):
        season[i] += gain[i] * surprise
        part = gain[i] / foreseen
        for j in range(size):
            unsure[i, j] -= part * gain[j]
    season[0] = max(season[0], 0.0)


@kernel(error_model="numpy")
def season_now(waves: Floats, season: Array, unsure: Array) -> tuple[float, float]:
    """How many times its level a bin has at this phase, and the variance of that."""
    factor, doubt = 1.0, 0.0
    for i in range(1, len(season)):
        factor += season[i] * waves[i]
        total = 0.0
        for j in range(1, i):
            total += unsure[i, j] * waves[j]
        doubt += waves[i] * (2 * total + unsure[i, i] * waves[i])
    return max(factor, LEAST), max(doubt, 0.0)
