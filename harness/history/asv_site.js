'use strict';

/* Numbers at the ends of the y-axis lie under the frame: asv gives it no room but for seconds and bytes. */
(function ($) {
    const SHARE = 0.05;
    const draw = $.plot;

    function with_room(options) {
        const axis = (options && options.yaxis) || {};
        if (!Number.isFinite(axis.min) || !Number.isFinite(axis.max) || axis.transform) {
            return options;
        }
        const room = SHARE * (axis.max - axis.min) || Math.abs(axis.max) / 2 || 1;
        return $.extend(true, {}, options, {yaxis: {min: axis.min - room, max: axis.max + room}});
    }

    $.plot = Object.assign(function (place, data, options) {
        return draw(place, data, with_room(options));
    }, draw);
})(jQuery);
